"""What every rank spends each step with, in seconds that add up to the step: work, transfers, waiting, and idle times by what
the host did (``TimeKind``). Idle is where the device has nothing to do; without a device, where the host runs no operator.

Idle time belongs to the first of these that covers it: garbage collection, data loading, checkpoint, allocator, start-up; then
the synchronization that had drained the device (a scalar read, a copy to the host, another one), as long as the host prepares
new work; other calls of the runtime; launching; recorded Python code; nothing (``PAUSE``). Where the kernel's scheduler counted
how long the host had no core, that time (``CORE_WAIT``) is taken from the kinds of the host.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.trace.breakdown import is_python_name
from clusterscape.analyze.trace.intervals import Times, cover_until, join_times, subtract_times
from clusterscape.model.arrays import Bools, Float64s, Int64s
from clusterscape.model.spans import Phase, SpanClass
from clusterscape.model.trace_report import TimeKind

SHORT_SHARE = 0.01
SHORT_NS = (20_000, 1_000_000)
"""A host that records nothing for less than this share of a step, within these limits, runs Python between two operators."""
DRAIN_NS = 5_000
"""Clocks of host and device may differ by this: a synchronization ends when the device has finished."""
LONG_CALL_NS = 1_000_000
"""A launch that takes longer than this is more than a launch."""

_NAMES = (
    (TimeKind.GARBAGE_COLLECTION, r"^Python GC\b|^gc$|gc\.collect|(?i:garbage.?collect)|<built-in function collect>"),
    (TimeKind.SCALAR_READ, r"^aten::(item|_local_scalar_dense|is_nonzero)$"),
    (TimeKind.COPY_TO_HOST, r"^aten::(copy_|to|_to_copy|cpu)$"),
    (TimeKind.SYNCHRONIZATION, r"Synchronize$|^(cuda|hip)Memcpy(2D|WithStream|FromSymbol)?$|^(Stream|Context|Event) Sync$"),
    (
        TimeKind.START_UP,
        r"^(cuInit|hipInit|cu(da)?(Ctx|DevicePrimaryCtx)\w*(Create|Retain)\w*|(cu|hip)(Module|Library)Load\w*|cu(da)?LibraryLoad\w*"
        r"|cublas\w*Create\w*|cudnnCreate\w*|(cuda|hip)GetDeviceProperties\w*|(cuda|hip)SetDevice)$",
    ),
    (
        TimeKind.ALLOCATION,
        r"^((cuda|hip)(Ext)?(Malloc|Free|HostAlloc|HostMalloc|HostFree|HostRegister|HostUnregister)(Host|Managed|Pitch|3D|Array)?"
        r"|cuMem(Alloc|Free|Create|Release|Map|Unmap|SetAccess|AddressReserve|AddressFree|HostAlloc)\w*)$",
    ),
    (
        TimeKind.CHECKPOINT,
        r"^torch\.save\b|serialization\.py\(\d+\): _?(legacy_)?save"
        r"|(?i:\b(save|write|store)_?(checkpoint|model|state)|checkpoint_?(save|write))|(?i:^(save|checkpoint(ing)?|snapshot)$)|distributed/checkpoint/\w+\.py",
    ),
    (TimeKind.DATA_LOADING, r"^enumerate\(DataLoader\)|torch/utils/data/"),
)  # fmt: skip
_PATTERNS = [(kind, re.compile(pattern)) for kind, pattern in _NAMES]
IDLE_KINDS = (
    TimeKind.GARBAGE_COLLECTION, TimeKind.DATA_LOADING, TimeKind.CHECKPOINT, TimeKind.ALLOCATION, TimeKind.START_UP,
    TimeKind.SCALAR_READ, TimeKind.COPY_TO_HOST, TimeKind.SYNCHRONIZATION, TimeKind.RUNTIME_CALL, TimeKind.LAUNCHING,
    TimeKind.HOST_CODE, TimeKind.CORE_WAIT, TimeKind.PAUSE, TimeKind.IDLE,
)  # fmt: skip
KINDS = (
    TimeKind.COMPUTE,
    TimeKind.SLOWER_COMPUTE,
    TimeKind.TRANSFERRING,
    TimeKind.WAITING,
    *IDLE_KINDS,
)
COMPUTING_KINDS = (TimeKind.COMPUTE, TimeKind.LAUNCHING, TimeKind.HOST_CODE, TimeKind.GARBAGE_COLLECTION)
"""In which a host needs a core; compute only where there is no device."""
BLOCKING_KINDS = (TimeKind.DATA_LOADING, TimeKind.CHECKPOINT, TimeKind.PAUSE, TimeKind.TRANSFERRING, TimeKind.WAITING)
"""In which a host may need a core, or sleep."""
OVERLAPPED_KINDS = (
    TimeKind.GARBAGE_COLLECTION, TimeKind.DATA_LOADING, TimeKind.CHECKPOINT, TimeKind.ALLOCATION, TimeKind.START_UP,
    TimeKind.LAUNCHING,
)  # fmt: skip
"""Of the host, and recorded as such: that a host waits for others, too, is not recorded."""
_Take = Callable[[TimeKind, Times], None]
"""Claims what is left of the times for a kind."""
_NOTHING = Times(np.zeros(0, np.int64), np.zeros(0, np.int64))


def find_name_kind(name: str) -> TimeKind | None:
    """The kind of time that a span of this name takes; None if the name does not tell."""
    return next((kind for kind, pattern in _PATTERNS if pattern.search(name)), None)


@dataclass(frozen=True, slots=True)
class Attribution:
    """``seconds`` (kind, rank, step): NaN where a rank lacks the step; ``SLOWER_COMPUTE`` is part of ``COMPUTE`` until the
    work is known (``causes.py``). ``times``: where each kind of a rank lies, ``covered_s`` (kind, rank, step) their length:
    longer than ``seconds`` where the host waited for a core, since nobody recorded when. ``calls`` (rank, step): number of
    scalar reads that waited for the device; ``loading_s`` (rank, step): data loading, also where the device is busy;
    ``overlapped_s`` (kind, rank, step): what the host does while its device already waits for other ranks, which ``seconds``
    count as waiting. A rank is compared with all that its peers do.
    """

    ranks: tuple[int, ...]
    steps: tuple[int, ...]
    seconds: Mapping[TimeKind, Float64s]
    covered_s: Mapping[TimeKind, Float64s]
    times: Mapping[tuple[int, TimeKind], Times]
    calls: Float64s
    loading_s: Float64s
    overlapped_s: Mapping[TimeKind, Float64s]
    has_device: frozenset[int]
    has_host: frozenset[int]

    @property
    def step_s(self) -> Float64s:
        """Length of every rank's step (rank, step); NaN where a rank lacks it."""
        total: Float64s = np.sum([self.seconds[kind] for kind in KINDS], axis=0)
        return total


def attribute_steps(
    spans: pl.DataFrame,
    steps: pl.DataFrame,
    parts: pl.DataFrame,
    passes: pl.DataFrame,
    core_waits: pl.DataFrame | None = None,
) -> Attribution:
    """Divide every rank's steps. ``steps`` and ``parts`` as ``breakdown.py`` returns them; ``passes`` of a pipeline count as
    compute on ranks of which the host is not recorded: their kernels may not be, either. ``core_waits``: of the trace.
    """
    ranks = tuple(int(rank) for rank in steps["rank"].unique().sort())
    numbers = tuple(int(step) for step in steps["step"].unique().sort())
    seconds = {kind: np.full((len(ranks), len(numbers)), np.nan) for kind in KINDS}
    calls, loading_s = np.zeros((2, len(ranks), len(numbers)))
    overlapped_s = {kind: np.zeros((len(ranks), len(numbers))) for kind in OVERLAPPED_KINDS}
    times: dict[tuple[int, TimeKind], Times] = {}
    with_device, with_host = set(), set()
    names = _classify_names(spans)
    for row, rank in enumerate(ranks):
        mine = _RankSpans(spans.filter(pl.col("rank") == rank), names)
        windows = steps.filter(pl.col("rank") == rank).sort("step")
        start, end = windows["start_ns"].to_numpy(), windows["end_ns"].to_numpy()
        at = np.searchsorted(numbers, windows["step"].to_numpy())
        if mine.has_device:
            with_device.add(rank)
        if mine.has_host:
            with_host.add(rank)
        own_passes = passes.filter(pl.col("rank") == rank)
        in_pass = (
            _NOTHING
            if mine.has_host
            else join_times(own_passes["start_ns"].to_numpy(), own_passes["end_ns"].to_numpy())
        )
        divided = mine.divide(join_times(start, end), parts.filter(pl.col("rank") == rank), in_pass)
        for kind in KINDS:
            kind_times = divided.get(kind, _NOTHING)
            times[rank, kind] = kind_times
            seconds[kind][row, at] = (cover_until(kind_times, end) - cover_until(kind_times, start)) / 1e9
        reads = mine.scalar_reads
        calls[row, at] = np.searchsorted(reads, end) - np.searchsorted(reads, start)
        loading_s[row, at] = (cover_until(mine.loading, end) - cover_until(mine.loading, start)) / 1e9
        for kind, overlapped in mine.find_overlapped(divided.get(TimeKind.WAITING, _NOTHING)).items():
            overlapped_s[kind][row, at] = (cover_until(overlapped, end) - cover_until(overlapped, start)) / 1e9
    divided_s = seconds
    if core_waits is not None:
        divided_s = _take_core_waits(seconds, times, ranks, numbers, core_waits, with_device)
    return Attribution(
        ranks,
        numbers,
        divided_s,
        seconds,
        times,
        calls,
        loading_s,
        overlapped_s,
        frozenset(with_device),
        frozenset(with_host),
    )


def _take_core_waits(
    seconds: dict[TimeKind, Float64s],
    times: dict[tuple[int, TimeKind], Times],
    ranks: Sequence[int],
    steps: Sequence[int],
    core_waits: pl.DataFrame,
    with_device: set[int],
) -> dict[TimeKind, Float64s]:
    """Take the time without a core from the kinds in which it may lie: first those in which the host computes, as far as they are
    longer than it had a core, then all others in proportion.
    """
    waited, on_core = np.zeros((2, len(ranks), len(steps)))
    rows, columns = {rank: at for at, rank in enumerate(ranks)}, {step: at for at, step in enumerate(steps)}
    for rank, step, cpu_s, wait_s in core_waits.iter_rows():
        if rank in rows and step in columns:
            at = rows[rank], columns[step]
            on_core[at], waited[at] = cpu_s, wait_s
    is_host = np.array([[rank not in with_device] for rank in ranks])
    left = dict(seconds)
    core_wait_s = np.zeros_like(waited)
    for waiting_kinds, busy_s in ((COMPUTING_KINDS, on_core), (BLOCKING_KINDS, np.zeros_like(on_core))):
        parts = {kind: np.nan_to_num(left[kind]) * (is_host | (kind is not TimeKind.COMPUTE)) for kind in waiting_kinds}
        total = np.sum(list(parts.values()), axis=0)
        own = np.clip(waited - core_wait_s, 0.0, np.maximum(total - busy_s, 0.0))
        share = np.divide(own, total, out=np.zeros_like(total), where=total > 0)
        for kind, part in parts.items():
            left[kind] = left[kind] - share * part
        core_wait_s += own
    left[TimeKind.CORE_WAIT] = seconds[TimeKind.CORE_WAIT] + core_wait_s
    all_kinds = (*COMPUTING_KINDS, *BLOCKING_KINDS)
    total = np.sum(
        [np.nan_to_num(seconds[kind]) * (is_host | (kind is not TimeKind.COMPUTE)) for kind in all_kinds], axis=0
    )
    seconds[TimeKind.CORE_WAIT] = np.where(core_wait_s > 0, total, seconds[TimeKind.CORE_WAIT])
    for rank in ranks:
        own_kinds = [kind for kind in all_kinds if kind is not TimeKind.COMPUTE or rank not in with_device]
        times[rank, TimeKind.CORE_WAIT] = _union(*(times[rank, kind] for kind in own_kinds))
    return left


def _classify_names(spans: pl.DataFrame) -> pl.DataFrame:
    """Every name with its kind and whether it is a Python function. Names are few, so each is classified once."""
    unique = spans["name"].unique().drop_nulls()
    texts = unique.cast(pl.String).to_list()
    kinds = [find_name_kind(text) for text in texts]
    codes = [-1 if kind is None else KINDS.index(kind) for kind in kinds]
    is_copy = [text.startswith("Memcpy DtoH") or "DeviceToHost" in text for text in texts]
    return pl.DataFrame(
        [
            unique.alias("name"),
            pl.Series("code", codes, dtype=pl.Int8),
            pl.Series("is_python", [is_python_name(text) for text in texts]),
            pl.Series("is_copy", is_copy),
        ]
    )


def _union(*parts: Times) -> Times:
    return join_times(np.concatenate([part.starts for part in parts]), np.concatenate([part.ends for part in parts]))


def _intersect(first: Times, second: Times) -> Times:
    if not first.starts.size or not second.starts.size:
        return _NOTHING
    return subtract_times(first, subtract_times(first, second))


def fill_short(times: Times, shortest_ns: int) -> Times:
    """The times with gaps shorter than this filled."""
    if times.starts.size < 2:
        return times
    is_new = np.append(True, times.starts[1:] - times.ends[:-1] >= shortest_ns)
    return Times(times.starts[is_new], np.append(times.ends[:-1][is_new[1:]], times.ends[-1]))


class _RankSpans:
    """The spans of one rank as arrays, and what is known of its host."""

    def __init__(self, spans: pl.DataFrame, names: pl.DataFrame) -> None:
        columns = spans.select(
            "start_ns", "end_ns", "is_device", "name", "lane", "correlation", pl.col("span_class").to_physical().alias("class"),
            (pl.col("phase") == Phase.DATA.value).fill_null(False).alias("is_data"),
        ).join(names, on="name", how="left", maintain_order="left")  # fmt: skip
        self._start, self._end = columns["start_ns"].to_numpy(), columns["end_ns"].to_numpy()
        self._class = columns["class"].to_numpy()
        self._code = columns["code"].fill_null(-1).to_numpy()
        self._is_device = columns["is_device"].fill_null(False).to_numpy()
        self._is_python = columns["is_python"].fill_null(False).to_numpy()
        self._is_copy = columns["is_copy"].fill_null(False).to_numpy()
        self._is_data = columns["is_data"].to_numpy()
        self._is_main = self._find_main(columns)
        self._on_host = ~self._is_device & (self._is(SpanClass.HOST) | self._is(SpanClass.LAUNCH))
        work = self._is(SpanClass.COMPUTE) | self._is(SpanClass.MEMORY)
        self.has_device = bool(work.any())
        self.has_host = bool((self._on_host & self._is(SpanClass.HOST)).any())
        self._work = work if self.has_device else self._is(SpanClass.HOST) & ~self._is_python
        self._correlation = columns["correlation"].fill_null(-1).to_numpy()
        self._launches = self._find_launching(columns)
        self._syncs = self._named(TimeKind.SYNCHRONIZATION) & ~self._in_communication(columns)
        syncs = self._syncs
        reads = self._select(self._named(TimeKind.SCALAR_READ))
        sync_starts = self._start[syncs]
        is_mark = self._is(SpanClass.ANNOTATION) & ~self._is_device
        self.loading = self._select(self._is_main & ((is_mark & self._is_data) | self._named(TimeKind.DATA_LOADING)))
        self.scalar_reads: Int64s = np.sort(sync_starts[_contains(reads, sync_starts)])

    def _is(self, span_class: SpanClass) -> Bools:
        matches: Bools = self._class == list(SpanClass).index(span_class)
        return matches

    def _named(self, kind: TimeKind) -> Bools:
        matches: Bools = (self._code == KINDS.index(kind)) & ~self._is_device
        return matches

    def _select(self, chosen: Bools) -> Times:
        return join_times(self._start[chosen], self._end[chosen])

    def _in_communication(self, columns: pl.DataFrame) -> Bools:
        """Spans within a communication of the same thread, such as gloo's: it waits for the device, the host does not."""
        lanes = columns["lane"].to_physical().fill_null(0).to_numpy()
        on_host = self._is(SpanClass.COMMUNICATION) & ~self._is_device
        inside = np.zeros(lanes.size, bool)
        for lane in np.unique(lanes[on_host]):
            of_lane = lanes == lane
            inside[of_lane] = _contains(self._select(on_host & of_lane), self._start[of_lane])
        return inside

    def _copies_to_host(self) -> Times:
        """Operators that copy from the device to the host; copies in the other direction have the same names."""
        named = self._named(TimeKind.COPY_TO_HOST)
        copied = self._correlation[self._is_copy & self._is_device & (self._correlation >= 0)]
        if not copied.size:
            return self._select(named)
        launched = np.sort(self._start[~self._is_device & np.isin(self._correlation, copied)])
        first = np.searchsorted(launched, self._start)
        last = np.searchsorted(launched, self._end, side="right")
        return self._select(named & (last > first))

    def _find_main(self, columns: pl.DataFrame) -> Bools:
        """Spans of the thread that runs the steps; of all threads if no steps are marked."""
        marks = np.flatnonzero(self._is(SpanClass.STEP))
        lanes = columns["lane"].to_physical().to_numpy()
        if not marks.size or columns["lane"].null_count():
            return np.ones(columns.height, bool)
        is_main: Bools = lanes == lanes[marks[0]]
        if not (is_main & ~self._is(SpanClass.STEP)).any():
            return np.ones(columns.height, bool)
        return is_main

    def _find_launching(self, columns: pl.DataFrame) -> Bools:
        """Spans of threads that launch kernels, such as the one of the backward pass, which runs hooks."""
        kernels = self._correlation[self._is_device & self._is(SpanClass.COMPUTE) & (self._correlation >= 0)]
        if not kernels.size or columns["lane"].null_count():
            return np.zeros(columns.height, bool)
        lanes = columns["lane"].to_physical().to_numpy()
        launches = self._is(SpanClass.LAUNCH) & np.isin(self._correlation, kernels)
        matches: Bools = np.isin(lanes, np.unique(lanes[launches]))
        return matches

    def divide(self, windows: Times, parts: pl.DataFrame, passes: Times) -> dict[TimeKind, Times]:
        """Disjoint times by kind, which together are the windows."""
        busy = self._select(self._work)
        arrive, end = parts["arrive_ns"].to_numpy(), parts["end_ns"].to_numpy()
        waited = parts.drop_nulls("wait_end_ns")
        wait_ends = np.minimum(waited["wait_end_ns"].to_numpy(), waited["end_ns"].to_numpy())
        waiting = join_times(waited["arrive_ns"].to_numpy(), wait_ends)
        host = self._explicit_host()
        divided: dict[TimeKind, Times] = {}
        left = windows

        def take(kind: TimeKind, times: Times) -> None:
            nonlocal left
            if not times.starts.size or not left.starts.size:
                return
            claimed = _intersect(left, times)
            if claimed.starts.size:
                divided[kind] = _union(divided[kind], claimed) if kind in divided else claimed
                left = subtract_times(left, claimed)

        if not self.has_device:
            for kind, times in host.items():
                take(kind, times)
        else:
            self._take_copies(take, host)
        take(TimeKind.COMPUTE, busy)
        take(TimeKind.WAITING, waiting)
        take(TimeKind.TRANSFERRING, join_times(arrive, end))
        take(TimeKind.COMPUTE, passes)
        for kind, times in host.items():
            take(kind, times)
        if self._on_host.any():
            steps = windows.ends - windows.starts
            short_ns = int(np.clip(SHORT_SHARE * np.median(steps), *SHORT_NS)) if steps.size else SHORT_NS[0]
            self._divide_idle(left, take, short_ns)
        take(TimeKind.PAUSE if self.has_host else TimeKind.IDLE, left)
        return divided

    def _explicit_host(self) -> dict[TimeKind, Times]:
        """What the host does apart from launching, in the order in which it claims idle time."""
        return {
            TimeKind.GARBAGE_COLLECTION: self._select(self._named(TimeKind.GARBAGE_COLLECTION)),
            TimeKind.DATA_LOADING: self.loading,
            TimeKind.CHECKPOINT: self._select(self._is_main & self._named(TimeKind.CHECKPOINT)),
            TimeKind.ALLOCATION: self._select(self._named(TimeKind.ALLOCATION)),
            TimeKind.START_UP: self._select(self._named(TimeKind.START_UP)),
        }

    def find_overlapped(self, waiting: Times) -> dict[TimeKind, Times]:
        """What the host does while its device waits for other ranks."""
        if not self.has_device or not waiting.starts.size:
            return {}
        overlapped = {}
        left = waiting
        for kind, times in self._explicit_host().items():
            overlapped[kind] = _intersect(left, times)
            left = subtract_times(left, times)
        launching = self._select(self._on_host & ~self._is_python & ~self._syncs)
        overlapped[TimeKind.LAUNCHING] = subtract_times(_intersect(left, launching), self._select(self._syncs))
        return overlapped

    def _take_copies(self, take: _Take, host: Mapping[TimeKind, Times]) -> None:
        """Copies from the device to the host that no kernel hides, by why the host wants them."""
        copies = self._select(self._is_device & self._is_copy & self._is(SpanClass.MEMORY))
        if not copies.starts.size:
            return
        copies = subtract_times(copies, self._select(self._is(SpanClass.COMPUTE) & self._is_device))
        take(TimeKind.CHECKPOINT, _intersect(copies, host[TimeKind.CHECKPOINT]))
        take(TimeKind.SCALAR_READ, _intersect(copies, self._select(self._named(TimeKind.SCALAR_READ))))
        take(TimeKind.COPY_TO_HOST, copies)

    def _divide_idle(self, idle: Times, take: _Take, short_ns: int) -> None:
        """Idle times of which the host's record tells the reason."""
        recorded = self._on_host & ~self._is_python
        working = fill_short(self._select(recorded), short_ns)
        if self.has_device and idle.starts.size:
            syncs = self._select(self._syncs)
            drained = self._find_drained(idle, syncs)
            reads = self._select(self._named(TimeKind.SCALAR_READ))
            copies = self._copies_to_host()
            is_copied = _contains(copies, drained.sync_starts)
            is_read = _contains(reads, drained.sync_starts)
            for kind, chosen in (
                (TimeKind.SCALAR_READ, is_read),
                (TimeKind.COPY_TO_HOST, is_copied & ~is_read),
                (TimeKind.SYNCHRONIZATION, ~is_read & ~is_copied),
            ):
                gaps = Times(drained.gaps.starts[chosen], drained.gaps.ends[chosen])
                take(kind, _intersect(gaps, working))
            take(TimeKind.COPY_TO_HOST, copies)
            take(TimeKind.SYNCHRONIZATION, syncs)
            long_call = self._is(SpanClass.LAUNCH) & (self._end - self._start >= LONG_CALL_NS)
            take(TimeKind.RUNTIME_CALL, self._select(long_call & (self._code < 0)))
            take(TimeKind.LAUNCHING, working)
        take(TimeKind.HOST_CODE, self._select(self._is_python & (self._is_main | self._launches) & (self._code < 0)))
        if not self.has_device:
            take(TimeKind.HOST_CODE, subtract_times(working, self._select(self._work)))

    @staticmethod
    def _find_drained(idle: Times, syncs: Times) -> "_Drained":
        """Idle times that begin while the host waits for the device: there was nothing else to run."""
        if not syncs.starts.size:
            return _Drained(_NOTHING, np.zeros(0, np.int64))
        at = np.searchsorted(syncs.starts, idle.starts, side="right") - 1
        inside = (at >= 0) & (syncs.ends[np.maximum(at, 0)] >= idle.starts - DRAIN_NS)
        gaps = Times(idle.starts[inside], idle.ends[inside])
        return _Drained(gaps, syncs.starts[at[inside]])


@dataclass(frozen=True, slots=True)
class _Drained:
    gaps: Times
    sync_starts: Int64s


def _contains(times: Times, moments: Int64s) -> Bools:
    if not times.starts.size:
        return np.zeros(moments.size, bool)
    at = np.searchsorted(times.starts, moments, side="right") - 1
    matches: Bools = (at >= 0) & (times.ends[np.maximum(at, 0)] > moments)
    return matches


def find_longest(times: Times, starts: Sequence[int], ends: Sequence[int]) -> list[tuple[int, int]]:
    """The longest of the times within each window; the window itself if there is none."""
    longest = []
    for low, high in zip(starts, ends, strict=True):
        first = int(np.searchsorted(times.ends, low, side="right"))
        last = int(np.searchsorted(times.starts, high, side="left"))
        begin, end = np.maximum(times.starts[first:last], low), np.minimum(times.ends[first:last], high)
        if not begin.size:
            longest.append((low, high))
            continue
        at = int(np.argmax(end - begin))
        longest.append((int(begin[at]), int(end[at])))
    return longest
