"""How often each value of a GPU is read: a driver's answers differ a thousandfold in cost, and not everything changes quickly.

Processor time of one question to an H200 (driver 580): utilization 60 µs, power 0.1 ms, memory 0.1 ms, processes 0.3 ms,
PCIe 0.8 ms (and 20 ms of waiting), utilization of processes 2 ms, energy 4 ms.
"""

from enum import IntFlag


class Part(IntFlag):
    """What is read beside utilization and power, which every tick has."""

    NONE = 0
    MEMORY = 1  # of GPUs and MIG instances
    STATE = 2  # clocks, heat, throttle reasons, processes and their memory
    PCIE = 4  # one direction of one GPU, in turns: the driver watches the bus for 20 ms
    COUNTERS = 8  # energy, NVLink, how busy each process and MIG instance was


EARLY_S = 20.0
EVERY_S = {
    Part.MEMORY: (0.5, 0.5),
    Part.STATE: (1.0, 1.0),
    Part.PCIE: (1.0, 5.0),
    Part.COUNTERS: (2.0, 5.0),
}
"""In the first ``EARLY_S`` seconds, for the sake of short runs, and from then on."""
LAST_LOOK = Part.MEMORY | Part.COUNTERS
"""What the end of a run needs."""
SHORTEST_WITH_PCIE_S = 0.05
"""Of ticks; with shorter ones the wait would cost some of them."""


class Schedule:
    """Which parts are due at a tick: each once in every stretch of its own length since the first one, whatever is left out."""

    def __init__(self, period_s: float) -> None:
        self._half_tick_s = period_s / 2
        self._parts = [part for part in EVERY_S if part is not Part.PCIE or period_s >= SHORTEST_WITH_PCIE_S]
        self._first_us: int | None = None
        self._done: dict[Part, int] = {}

    def due(self, time_us: int) -> Part:
        """At this tick; a tick that comes a little early counts for the stretch it was meant for."""
        if self._first_us is None:
            self._first_us = time_us
        passed_s = (time_us - self._first_us) / 1e6 + self._half_tick_s
        found = Part.NONE
        for part in self._parts:
            early_s, later_s = EVERY_S[part]
            stretch = int(min(passed_s, EARLY_S) / early_s) + int(max(0.0, passed_s - EARLY_S) / later_s)
            if self._done.get(part) != stretch:
                self._done[part] = stretch
                found |= part
        return found
