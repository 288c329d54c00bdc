"""An open benchmark of faults in distributed training: cases with a planted fault and a measured truth, each with a healthy twin
of the same seed. Any tool's answers can be scored. ``python -m benchmarks.faults`` records, simulates, answers and scores.

``kinds``: the faults, what a right answer names them, and how a case of a seed is drawn.
``training``: one rank of a small training on CPU (gloo) or a GPU, and the injectors, which write the truth when they act.
``archive``: packs recorded cases into a few files, for cases that are recorded on another machine.
``telemetry``: what the machine says of every rank meanwhile.
``recording``: runs the ranks and writes one JSON per case.
``simulated``: traces of simulated devices: streams, launches, copies and collectives with planted faults of the device.
``answers``: our verdicts and the baselines, as answers.
``scoring``: precision, recall and F1 of the cause, the rank and the seconds.
"""
