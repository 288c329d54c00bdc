"""Who hangs, where in the code, and why: from looks at all ranks (``model/hangs.py``) to one verdict. Pure.

``history``: which call a rank's own past predicts.
``stacks``: what a rank does by its stack and its process.
``stalls``: process groups with a pending call, and which of them waits for which.
``verdict``: the verdict.
``wording``: its sentences.
"""
