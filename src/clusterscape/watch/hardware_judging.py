"""Judges GPUs, nodes and sources by the rules that are about these, and keeps their violations. No thread, no loop."""

from collections.abc import Iterable, Mapping, Sequence

from clusterscape.model import UnixMs
from clusterscape.model.hardware import is_hardware
from clusterscape.model.rules import Rule, Subject, Violation
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.records.contract import RecordStore
from clusterscape.watch.judging import Judged, add_values, judge
from clusterscape.watch.keeper import Turned, ViolationKeeper
from clusterscape.watch.rulebook import RuleBook

HARDWARE = tuple(subject for subject in Subject if subject.is_hardware)


class HardwareJudge:
    """Each subject by itself: a judgement ends what its rules do not find any more."""

    def __init__(self, records: RecordStore, metrics: MetricStore, book: RuleBook) -> None:
        self.judged: Mapping[Subject, Judged] = {}
        self._records = records
        self._metrics = metrics
        self._book = book
        self._keepers = {subject: ViolationKeeper() for subject in HARDWARE}

    @property
    def open(self) -> list[Violation]:
        """What breaks a rule, or did until a moment ago."""
        return [each for keeper in self._keepers.values() for each in keeper.open.values()]

    def keeper(self, subject: Subject) -> ViolationKeeper:
        """Of the violations of one subject."""
        return self._keepers[subject]

    def replace(self, open_violations: Iterable[Violation]) -> None:
        """Believe the store. What hangs on a rule that is gone ends with the next judgement, whoever keeps it."""
        subjects = {rule.key: rule.scope.subject for rule in self._book.rules()}
        mine = [each for each in open_violations if is_hardware(each.workload)]
        for subject, keeper in self._keepers.items():
            keeper.replace(each for each in mine if subjects.get(each.rule, HARDWARE[0]) is subject)

    def look(self, at: UnixMs) -> None:
        """Judge all; ``turn`` then says what follows."""
        self.judged = {subject: self._judge(subject, at) for subject in HARDWARE}

    def turn(self) -> Turned:
        """What the last judgement began and ended."""
        turned = Turned()
        for subject, judged in self.judged.items():
            found = add_values(self._keepers[subject].judge(judged.judgement), judged)
            self._keepers[subject].amend(found.started)
            turned.started.extend(found.started)
            turned.stopped.extend(found.stopped)
        return turned

    def drop_rule(self, rule: str, at: UnixMs) -> Turned:
        """End all that hangs on a rule that is gone."""
        turned = Turned()
        for keeper in self._keepers.values():
            turned.stopped.extend(keeper.drop_rule(rule, at).stopped)
        return turned

    def _judge(self, subject: Subject, at: UnixMs) -> Judged:
        rules = self._book.enabled(subject)
        return judge_hardware(rules, subject, self._records, self._metrics, at, book_version=self._book.version)


def judge_hardware(
    rules: Sequence[Rule],
    subject: Subject,
    records: RecordStore,
    metrics: MetricStore,
    at: UnixMs,
    *,
    book_version: int = 0,
) -> Judged:
    """Every rule on every GPU, node or source that is known now."""
    from clusterscape.watch.hardware_columns import list_rows, read_now  # brings numba along

    rows = list_rows(subject, records) if rules else []
    columns = read_now(metrics, rules, rows, records.units() if subject is Subject.GPUS else (), at)
    return judge(rules, columns, columns.facts(subject), at=at, book_version=book_version, gpus=columns.gpus)
