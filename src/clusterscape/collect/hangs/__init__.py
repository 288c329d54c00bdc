"""Reads what a run that hangs left behind, into looks (``model/hangs.py``). Each source is optional.

``debug_server``: pages and dumps of PyTorch's debug server.
``flight_recorder``: dumps of PyTorch's Flight Recorder, as pickle or JSON.
``nccl_ras``: answers of NCCL RAS, as text or JSON.
``reading``: finds the files of a look, detects their formats, and determines the rank of each.
``safe_pickle``: reads pickles that contain only plain values, without executing anything.
``stacks``: stacks of py-spy and faulthandler.
"""
