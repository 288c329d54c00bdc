"""The card of a job: its shares of CPU, memory and GPUs, and what they say. Pure.

``advice``: what would have been enough, from this and similar past jobs.
``card``: the numbers of the card, from what the job used.
``notes``: sentences on what the numbers say.
``rounding``: numbers as jobstats and Slurm print them.
``text``: the card in the lines that users of jobstats know.
"""
