"""Who hangs, where in the code, and why: from looks at all ranks (``model/hangs.py``) to one verdict. Pure.

``condense``: what of a look is sent to a server.
``history``: which call a rank's own past predicts.
``joining``: the looks of several machines as one.
``picture``: ranks by process groups: how each stands to the pending call.
``progress``: whether a rank works although it makes no call.
``stacks``: what a rank does by its stack and its process.
``stalls``: process groups with a pending call, and which of them waits for which.
``verdict``: the verdict.
``wording``: its sentences.
"""
