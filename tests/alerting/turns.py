"""Short constructors of alert turns."""

from clusterscape.model.ids import UnitId, UnixMs, WorkloadId
from clusterscape.model.rules import (
    Condition,
    Operator,
    Quantity,
    Rule,
    Severity,
    Statistic,
    StatisticKind,
    Turn,
    ViolationTurn,
)
from clusterscape.watch.alerts.turns import AlertTurn, flatten

T0 = UnixMs(1_800_000_000_000)


def rule(key: str = "low-util", severity: Severity = Severity.WARNING, name: str | None = None) -> Rule:
    """A rule on the 95th percentile of the utilization."""
    condition = Condition(
        metric="gpu_util_ratio",
        statistic=Statistic(StatisticKind.PERCENTILE, percentile=95),
        operator=Operator.LESS,
        value=Quantity(0.8),
    )
    name = name or key.replace("-", " ").capitalize()
    return Rule(key=key, name=name, severity=severity, expression=condition, reason="GPUs wait for data.")


def started(
    workload: str = "slurm:1",
    at_s: float = 0.0,
    *,
    of: Rule | None = None,
    units: tuple[str, ...] = ("n1:0",),
    user: str | None = "ada",
) -> ViolationTurn:
    """A violation started ``at_s`` seconds after T0."""
    return _turn(Turn.STARTED, workload, at_s, at_s, of, units, user)


def stopped(
    workload: str = "slurm:1",
    at_s: float = 0.0,
    *,
    since_s: float = 0.0,
    of: Rule | None = None,
    units: tuple[str, ...] = ("n1:0",),
    user: str | None = "ada",
) -> ViolationTurn:
    """A violation that started ``since_s`` stopped ``at_s``."""
    return _turn(Turn.STOPPED, workload, at_s, since_s, of, units, user)


def _turn(
    turn: Turn, workload: str, at_s: float, since_s: float, of: Rule | None, units: tuple[str, ...], user: str | None
) -> ViolationTurn:
    return ViolationTurn(
        turn=turn,
        at=UnixMs(T0 + int(at_s * 1000)),
        rule=of or rule(),
        workload=WorkloadId(workload),
        user=user,
        project="llm",
        partition="a100",
        units=[UnitId(unit) for unit in units],
        since=UnixMs(T0 + int(since_s * 1000)),
        values={"gpu_util p95 < 80%": 0.41},
    )


def flat(turn: ViolationTurn) -> AlertTurn:
    """As alerts keep it."""
    return flatten(turn)


class PretendClock:
    """A clock that stands still until it is set."""

    def __init__(self, at: UnixMs = T0) -> None:
        self.at = at

    def __call__(self) -> UnixMs:
        return self.at

    def forward(self, seconds: float) -> None:
        """Later by so many seconds."""
        self.at = UnixMs(self.at + int(seconds * 1000))
