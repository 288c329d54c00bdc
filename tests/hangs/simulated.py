"""A simulation of ranks that enqueue collectives: who has enqueued, started and completed what when nothing moves any more.

A host enqueues up to ``ahead`` operations beyond what its GPU has completed. A GPU runs one operation after the other; an
operation completes when all members run it with equal signatures. What a fault does is only what the fields of ``Fault`` say.
"""

import random
from collections import Counter
from dataclasses import dataclass, field

KINDS = ("absent", "mismatch", "dead", "deadlock", "kernel", "link", "storage", "slow")


@dataclass(frozen=True)
class Group:
    """A process group: its name as torch gives it, and its ranks."""

    name: str
    description: str
    ranks: tuple[int, ...]


@dataclass(frozen=True)
class Operation:
    """One call. ``line``: of the script."""

    group: str
    name: str
    elements: int
    type: str = "Float"
    line: int = 40

    @property
    def signature(self) -> tuple[str, int, str]:
        """What must be equal on all members."""
        return (self.name, self.elements, self.type)


@dataclass
class Fault:
    """What goes wrong: ``rank`` at the call ``at`` of its program."""

    kind: str
    rank: int
    at: int
    text: str = ""  # how, of kinds with several ways


@dataclass
class Simulation:
    """Ranks, groups and programs; after ``settle`` also how far each rank came."""

    seed: int
    kind: str
    world: int
    groups: list[Group]
    programs: list[list[Operation]]
    fault: Fault
    ahead: int
    enqueued: list[int] = field(default_factory=list)
    completed: list[int] = field(default_factory=list)
    started: list[int] = field(default_factory=list)
    """Enqueued, completed and started calls of each rank."""

    def group(self, name: str) -> Group:
        """The group of this name."""
        return next(group for group in self.groups if group.name == name)

    def sequence(self, rank: int, index: int) -> int:
        """The number of a rank's call in its group, from 1."""
        program = self.programs[rank]
        return sum(operation.group == program[index].group for operation in program[: index + 1])

    def settle(self, stop_at: int) -> bool:
        """Run until nothing moves; whether it stopped before the programs' ends. ``stop_at``: where the fault acts."""
        fault = self.fault
        self.enqueued, self.completed, self.started = ([0] * self.world for _ in range(3))
        numbers = [self._numbers(rank) for rank in range(self.world)]
        moved = True
        while moved:
            moved = False
            for rank, program in enumerate(self.programs):
                most = min(len(program), self.completed[rank] + self.ahead)
                if rank == fault.rank and fault.kind in ("absent", "dead", "deadlock", "storage", "slow"):
                    most = min(most, stop_at)
                if most > self.enqueued[rank]:
                    self.enqueued[rank] = most
                    moved = True
                is_spinning = fault.kind == "kernel" and rank == fault.rank and self.completed[rank] >= stop_at
                head = min(self.enqueued[rank], self.completed[rank] + (0 if is_spinning else 1))
                if head > self.started[rank]:
                    self.started[rank] = head
                    moved = True
            running = {
                rank: (program[self.completed[rank]], numbers[rank][self.completed[rank]])
                for rank, program in enumerate(self.programs)
                if self.started[rank] > self.completed[rank]
            }
            for rank in range(self.world):
                if rank in running and self._completes(rank, running, stop_at):
                    for member in self.group(running[rank][0].group).ranks:
                        self.completed[member] += 1
                        running.pop(member)
                    moved = True
        return all(done < len(program) for done, program in zip(self.completed, self.programs, strict=True))

    def _numbers(self, rank: int) -> list[int]:
        counts: Counter[str] = Counter()
        numbers = []
        for operation in self.programs[rank]:
            counts[operation.group] += 1
            numbers.append(counts[operation.group])
        return numbers

    def _completes(self, rank: int, running: dict[int, tuple[Operation, int]], stop_at: int) -> bool:
        operation, number = running[rank]
        members = self.group(operation.group).ranks
        if self.fault.kind == "link" and self.fault.rank in members and self.completed[self.fault.rank] >= stop_at:
            return False
        return all(
            member in running
            and running[member][0].group == operation.group
            and running[member][1] == number
            and running[member][0].signature == operation.signature
            for member in members
        )


def make_groups(world: int) -> list[Group]:
    """The world, and pairs and groups across them if the number of ranks is even and at least 4; else a second one."""
    everyone = tuple(range(world))
    groups = [Group("0", "default_pg", everyone)]
    if world < 4 or world % 2:
        return [*groups, Group("1", "undefined", everyone)]
    pairs = [tuple(range(first, first + 2)) for first in range(0, world, 2)]
    across = [tuple(range(first, world, 2)) for first in range(2)]
    return [
        *groups,
        *(Group(str(1 + number), "mesh_tp", ranks) for number, ranks in enumerate(pairs)),
        *(Group(str(1 + len(pairs) + number), "mesh_dp", ranks) for number, ranks in enumerate(across)),
    ]


def simulate(kind: str, seed: int) -> Simulation:
    """A run with one fault that really stops it (or slows it down); redrawn until it does."""
    rng = random.Random(f"{kind}-{seed}")
    for _ in range(1000):
        simulation = _draw(kind, seed, rng)
        if simulation.settle(simulation.fault.at) or kind == "slow":
            return simulation
    raise AssertionError(f"no {kind} of seed {seed} stops the run")


def _draw(kind: str, seed: int, rng: random.Random) -> Simulation:
    world = rng.randint(2, 8)
    groups = make_groups(world)
    kinds = sorted({group.description for group in groups})
    layers = rng.randint(2, 5)
    step = [
        (
            rng.choice(kinds),
            rng.choice(("all_reduce", "_all_gather_base", "_reduce_scatter_base", "broadcast", "all_reduce")),
            rng.choice((256, 1024, 4096, 65_536, 1_000_000)),
            rng.choice(("Float", "BFloat16")),
            40 + number,
        )
        for number in range(layers)
    ]
    step += [("default_pg", "all_reduce", 1, "Float", 90), ("default_pg", "broadcast", 2, "Float", 91)]
    steps = rng.randint(10, 25)
    programs = [
        [
            Operation(_own(groups, rank, name).name, call, size, data, line)
            for _ in range(steps)
            for name, call, size, data, line in step
        ]
        for rank in range(world)
    ]
    at = len(step) * rng.randint(4, steps - 4) + rng.randrange(len(step))
    fault = Fault(kind, rng.randrange(world), at)
    if kind == "mismatch":
        fault.text = _break_program(programs[fault.rank], at, rng)
    elif kind in ("absent", "slow"):
        fault.text = rng.choice(("loader", "checkpoint", "compute", "sleep"))
    elif kind == "deadlock":
        fault.text = rng.choice(("lock", "queue", "child"))
    ahead = rng.choice((1, 1, rng.randint(2, 40)))
    return Simulation(seed, kind, world, groups, programs, fault, ahead)


def _own(groups: list[Group], rank: int, description: str) -> Group:
    return next(group for group in groups if group.description == description and rank in group.ranks)


def _break_program(program: list[Operation], at: int, rng: random.Random) -> str:
    """Change one rank's calls: another operation, another size, one left out, one more, or two in another order."""
    way = rng.choice(("operation", "size", "skip", "extra", "order"))
    operation = program[at]
    if way == "operation":
        other = "all_reduce" if operation.name != "all_reduce" else "broadcast"
        program[at] = Operation(operation.group, other, operation.elements, operation.type, 70)
    elif way == "size":
        program[at] = Operation(operation.group, operation.name, operation.elements * 2, operation.type, 71)
    elif way == "skip":
        del program[at]
    elif way == "extra":
        program.insert(at, Operation(operation.group, "all_reduce", 17, "Float", 72))
    else:
        program[at], program[at + 1] = program[at + 1], program[at]
    return way
