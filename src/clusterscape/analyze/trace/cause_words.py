"""Causes in words: the sentence, the advice and the evidence of each verdict."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from clusterscape.analyze.trace.attribution import LONG_CALL_NS, Attribution, find_name_kind
from clusterscape.analyze.trace.breakdown import WORK, is_python_name
from clusterscape.analyze.trace.causes import Cause
from clusterscape.analyze.trace.intervals import cover_until
from clusterscape.analyze.trace.measures import find_extra_work
from clusterscape.model.arrays import Float64s
from clusterscape.model.spans import SpanClass
from clusterscape.model.trace_report import TimeKind, VerdictKind, VerdictRhythm

MAIN_SHARE = 0.5  # one operator or namespace explains a slow rank if it has at least this share of its excess
COPIED_SHARE = 0.01  # of a pause with copies to the host: they are short, writing a file is not


@dataclass(frozen=True, slots=True)
class _Words:
    kind: VerdictKind
    of_rank: str
    of_all: str
    advice: str


WORDS = {
    TimeKind.SLOWER_COMPUTE: _Words(
        VerdictKind.SLOW_WORKER,
        "computes longer than its peers",
        "Compute is slower",
        "Compare clocks, power limit, temperature and other processes of its GPU and its cores with those of its peers.",
    ),
    TimeKind.DATA_LOADING: _Words(
        VerdictKind.INPUT_STALL,
        "waits for its input longer than its peers",
        "All ranks wait for their input",
        "Use more loader workers or prefetching, or move the preprocessing out of the step.",
    ),
    TimeKind.GARBAGE_COLLECTION: _Words(
        VerdictKind.GARBAGE_COLLECTION,
        "pauses for Python's garbage collection",
        "All ranks pause for Python's garbage collection",
        "Call gc.freeze() after the set-up, and collect on all ranks in the same step, or switch automatic collection off.",
    ),
    TimeKind.CHECKPOINT: _Words(
        VerdictKind.CHECKPOINT,
        "copies to the host and saves a checkpoint",
        "All ranks save a checkpoint",
        "Write checkpoints asynchronously, or let every rank save its part.",
    ),
    TimeKind.ALLOCATION: _Words(
        VerdictKind.ALLOCATION,
        "allocates or frees device memory, which blocks",
        "All ranks allocate or free device memory, which blocks",
        "Let the caching allocator keep its memory: avoid empty_cache(), and fragmentation by changing sizes.",
    ),
    TimeKind.START_UP: _Words(
        VerdictKind.START_UP,
        "starts the device's context or loads its libraries",
        "The device's context starts, or its libraries are loaded",
        "Record after a few steps: this happens once.",
    ),
    TimeKind.SCALAR_READ: _Words(
        VerdictKind.SCALAR_READS,
        "waits for its device to read single values (aten::item)",
        "The host waits for the device to read single values (aten::item)",
        "Keep values on the device, and read them every some steps, or all at once.",
    ),
    TimeKind.COPY_TO_HOST: _Words(
        VerdictKind.COPY_TO_HOST,
        "copies from the device to the host",
        "All ranks copy from the device to the host",
        "Copy into pinned memory without blocking, and less often.",
    ),
    TimeKind.SYNCHRONIZATION: _Words(
        VerdictKind.SYNCHRONIZATION,
        "waits until its device has finished, which then has nothing to do",
        "The host waits until the device has finished, which then has nothing to do",
        "Remove synchronize() calls and blocking copies from the step.",
    ),
    TimeKind.RUNTIME_CALL: _Words(
        VerdictKind.RUNTIME_CALL,
        "is held up by a long call of the device's runtime",
        "Long calls of the device's runtime hold up the host",
        "See which call it is: the first use of a kernel loads it, and a full queue blocks.",
    ),
    TimeKind.LAUNCHING: _Words(
        VerdictKind.LAUNCH_BOUND,
        "prepares its launches slower than its peers",
        "Devices are idle while the host prepares launches",
        "Larger or fused kernels, torch.compile, or CUDA graphs would help.",
    ),
    TimeKind.HOST_CODE: _Words(
        VerdictKind.HOST_CODE,
        "runs Python code between its operators, and computes nothing",
        "The host runs Python code between operators, and nothing is computed",
        "Move it out of the step, or to a thread that does not hold up launches.",
    ),
    TimeKind.CORE_WAIT: _Words(
        VerdictKind.CORE_CONTENTION,
        "is ready to run, but waits for a core longer than its peers",
        "The ranks share too few cores: their training threads are ready to run and wait for a core",
        "Give each rank cores of its own (one thread for training, one for communication, and its data loaders), and look "
        "for other programs on these cores.",
    ),
    TimeKind.PAUSE: _Words(
        VerdictKind.HOST_PAUSE,
        "pauses on the host",
        "All ranks pause: neither the host nor the device records work",
        "Record Python stacks, or look at CPU load, page faults and I/O at that time: garbage collection, files and other "
        "processes pause a host.",
    ),
    TimeKind.IDLE: _Words(
        VerdictKind.IDLE_DEVICE,
        "has an idle device longer than its peers",
        "Devices are idle, and the trace does not say what the host does",
        "Record the host, too (ProfilerActivity.CPU).",
    ),
}  # fmt: skip
WORK_ADVICE = "Batch sequences of similar length, pack them, or divide a batch by tokens instead of samples."


def name_verdict(cause: Cause) -> VerdictKind:
    """The kind of verdict that a cause gets."""
    if cause.is_work:
        return VerdictKind.UNEVEN_WORK
    is_slow = cause.rank is not None and TimeKind.SLOWER_COMPUTE in cause.kinds
    if is_slow and cause.kind not in (TimeKind.HOST_CODE, TimeKind.IDLE):
        return VerdictKind.SLOW_WORKER
    return WORDS[cause.kind].kind


def write_when(rhythm: VerdictRhythm, steps: int) -> str:
    """``in 3 of 6 steps``, ``in every step``, ``every 5 steps (4 of 20)``, ``since step 12 (8 of 20 steps)``."""
    count = len(rhythm.steps)
    if count == steps:
        return "in every step" if steps > 1 else "in the only step"
    if rhythm.kind == "periodic":
        return f"every {rhythm.period} steps ({count} of {steps})"
    if rhythm.kind == "since":
        return f"since step {rhythm.since_step} ({count} of {steps} steps)"
    return f"in {count} of {steps} steps"


def write_sentence(cause: Cause, spans: pl.DataFrame, attribution: Attribution) -> tuple[str, dict[str, float | str]]:
    """The sentence without its full stop, and the evidence."""
    steps = len(attribution.steps)
    when = write_when(cause.rhythm, steps)
    each_ms = cause.rhythm.seconds_per_affected_step * 1e3
    evidence: dict[str, float | str] = {"seconds_per_affected_step": cause.rhythm.seconds_per_affected_step}
    if cause.rhythm.chance is not None:
        evidence["chance_ratio"] = cause.rhythm.chance
    if cause.is_work:
        subject = "Work differs between ranks by step" if cause.rank is None else f"Rank {cause.rank} has more work"
        return f"{subject}, because input shapes do: up to {each_ms:,.1f} ms of compute {when}", evidence
    words = WORDS[cause.kind]
    call = find_call(cause, spans, attribution)
    if call is not None:
        evidence["call"] = call
    if cause.rank is None:
        of_all = words.of_all if len(attribution.ranks) > 1 else words.of_all.replace("All ranks ", "The rank ")
        named = f" (mostly {call})" if call is not None else ""
        text = f"{of_all}{named} {when}, {each_ms:,.1f} ms each"
        if cause.kind is TimeKind.SCALAR_READ:
            reads = float(attribution.calls.mean())
            evidence["reads_per_step"] = reads
            text = (
                f"The host waits for the device {reads:,.0f} times a step to read single values (aten::item): "
                f"{each_ms:,.1f} ms {when}"
            )
        return text, evidence
    named = f" (mostly {call})" if call is not None else ""
    text = f"Rank {cause.rank} {words.of_rank}{named} {when}, {each_ms:,.1f} ms each"
    row = attribution.ranks.index(cause.rank)
    copied_s = float(cause.removed[TimeKind.COPY_TO_HOST].sum()) if TimeKind.COPY_TO_HOST in cause.kinds else 0.0
    if cause.kind is TimeKind.PAUSE and copied_s > COPIED_SHARE * float(cause.seconds.sum()):
        text = f"Rank {cause.rank} copies to the host and pauses, as in a save, {when}, {each_ms:,.1f} ms each"
        return text, evidence | {"copy_to_host_s": copied_s / steps}
    if cause.kind is TimeKind.DATA_LOADING:
        own, peers = _compare(attribution.loading_s, row)
        evidence |= {"data_loading_s": own, "peers_data_loading_s": peers}
        text += f" ({own * 1e3:,.1f} ms per step, its peers {peers * 1e3:,.1f} ms)"
    elif cause.kind is TimeKind.PAUSE:
        text += "; nothing runs there"
    elif TimeKind.SLOWER_COMPUTE in cause.kinds:
        extra, more = describe_slow_work(cause, spans, attribution)
        return f"{text}{extra}", evidence | more
    return text, evidence


def find_call(cause: Cause, spans: pl.DataFrame, attribution: Attribution) -> str | None:
    """The call of the device's runtime, or the Python function, that takes most of the cause's time; None for other causes."""
    if cause.kind is TimeKind.HOST_CODE:
        return _find_function(cause, spans, attribution)
    if cause.kind not in (TimeKind.RUNTIME_CALL, TimeKind.ALLOCATION, TimeKind.START_UP, TimeKind.SYNCHRONIZATION):
        return None
    calls = spans.filter(
        (pl.col("span_class") == SpanClass.LAUNCH.value) & pl.col("step").is_in(list(attribution.steps))
    )
    if cause.rank is not None:
        calls = calls.filter(pl.col("rank") == cause.rank)
    length = (pl.col("end_ns") - pl.col("start_ns")).alias("ns")
    table = calls.select(pl.col("name").cast(pl.String), length)
    if cause.kind is TimeKind.RUNTIME_CALL:
        table = table.filter(pl.col("ns") >= LONG_CALL_NS)
    sums = table.group_by("name").agg(pl.col("ns").sum()).sort("ns", "name", descending=[True, False])
    wanted = None if cause.kind is TimeKind.RUNTIME_CALL else cause.kind
    return next((name for name in sums["name"] if find_name_kind(name) is wanted), None)


def _find_function(cause: Cause, spans: pl.DataFrame, attribution: Attribution) -> str | None:
    """The most specific Python function that covers most of the cause's time: of those that enclose each other the shortest."""
    seconds = np.maximum(cause.seconds, 0.0)
    own = np.nansum(attribution.seconds[cause.kind], axis=1)
    row = int(np.argmin(own)) if cause.rank is None else attribution.ranks.index(cause.rank)
    rank = attribution.ranks[row]
    steps = [step for step, part in zip(attribution.steps, seconds[row], strict=True) if part > 0]
    chosen = spans.lazy().filter(
        (pl.col("rank") == rank) & (pl.col("span_class") == SpanClass.HOST.value) & pl.col("step").is_in(steps)
    )
    table = chosen.select(pl.col("name").cast(pl.String), "start_ns", "end_ns").collect()
    start, end = table["start_ns"].to_numpy(), table["end_ns"].to_numpy()
    times = attribution.times[rank, cause.kind]
    covered = pl.Series("covered_s", (cover_until(times, end) - cover_until(times, start)) / 1e9)
    length = pl.Series("length_s", (end - start) / 1e9)
    sums = table.with_columns(covered, length).group_by("name").agg(pl.col("covered_s", "length_s").sum())
    sums = sums.filter(pl.col("covered_s") >= MAIN_SHARE * float(seconds[row].sum())).sort("length_s", "name")
    return next((name for name in sums["name"] if is_python_name(name)), None)


def _compare(seconds: Float64s, row: int) -> tuple[float, float]:
    """Mean seconds per step of a rank, and the median of the others. ``seconds``: (rank, step)."""
    means = np.nanmean(seconds, axis=1)
    others = np.delete(means, row)
    return float(means[row]), float(np.median(others)) if others.size else 0.0


def describe_slow_work(
    cause: Cause, spans: pl.DataFrame, attribution: Attribution
) -> tuple[str, dict[str, float | str]]:
    """What of a slow rank's work takes longer: a part of the model that its peers lack, some operators, or all of them."""
    assert cause.rank is not None
    row = attribution.ranks.index(cause.rank)
    own, peers = _compare(attribution.seconds[TimeKind.COMPUTE], row)
    evidence: dict[str, float | str] = {"compute_s": own, "peers_compute_s": peers}
    excess_s = float(np.sum([part.sum() for part in cause.removed.values()])) / max(1, len(attribution.steps))
    compute_s = float(cause.removed[TimeKind.SLOWER_COMPUTE].sum()) / max(1, len(attribution.steps))
    if cause.kind is not TimeKind.SLOWER_COMPUTE:
        return "", evidence
    if compute_s < MAIN_SHARE * excess_s:
        return ": mostly, its device is idle", evidence
    extra = find_extra_work(spans, cause.rank, len(attribution.steps))
    if extra is not None and extra[1] > MAIN_SHARE * compute_s:
        evidence |= {"extra_work": extra[0], "extra_work_s": extra[1]}
        return f", mostly in “{extra[0]}” ({extra[1] * 1e3:,.1f} ms per step)", evidence
    slow_operator = find_slow_operator(spans, cause.rank, attribution)
    if slow_operator is None:
        return "", evidence
    name, longer_s, more_calls = slow_operator
    if more_calls >= 1:
        evidence |= {"operator": name, "operator_s": longer_s, "more_calls": more_calls}
        return f": it runs “{name}” {more_calls:,.0f} times more per step ({longer_s * 1e3:,.1f} ms)", evidence
    if longer_s > MAIN_SHARE * compute_s:
        evidence |= {"operator": name, "operator_s": longer_s}
        return f", mostly in “{name}” ({longer_s * 1e3:,.1f} ms per step)", evidence
    return ": no operator in particular", evidence


def find_slow_operator(spans: pl.DataFrame, rank: int, attribution: Attribution) -> tuple[str, float, float] | None:
    """The operator whose time most exceeds the median of the other ranks: name, excess in seconds per step, and how many more
    calls per step it has. Enclosing operators of the host count less than the enclosed ones.
    """
    kinds = WORK if attribution.has_device else (SpanClass.HOST.value,)
    steps = list(attribution.steps)
    chosen = spans.filter(pl.col("span_class").cast(pl.String).is_in(list(kinds)) & pl.col("step").is_in(steps))
    length = (pl.col("end_ns") - pl.col("start_ns")).sum() / 1e9 / max(1, len(steps))
    table = chosen.group_by("rank", pl.col("name").cast(pl.String)).agg(
        length.alias("s"), (pl.len() / max(1, len(steps))).alias("calls")
    )
    if not table.height or table["rank"].n_unique() < 2:
        return None
    ranks = [at for at in attribution.ranks if at != rank]
    wide = {
        value: table.pivot("rank", index="name", values=value).fill_null(0.0).sort("name") for value in ("s", "calls")
    }
    others = [str(at) for at in ranks if str(at) in wide["s"].columns]
    if str(rank) not in wide["s"].columns or not others:
        return None
    excess = {
        value: wide[value][str(rank)].to_numpy() - np.median(wide[value].select(others).to_numpy(), axis=1)
        for value in wide
    }
    at = int(np.argmax(excess["s"]))
    # Of operators that enclose each other, the innermost has about the same excess.
    near = np.flatnonzero(excess["s"] >= 0.8 * excess["s"][at])
    own = wide["s"][str(rank)].to_numpy()
    at = int(near[np.argmin(own[near])])
    return str(wide["s"]["name"][at]), float(excess["s"][at]), float(excess["calls"][at])


def advise(cause: Cause) -> str:
    """What to do about it."""
    if cause.is_work:
        return WORK_ADVICE
    if cause.is_extra_work:
        return "Look at what this rank runs in addition to the training step: logging, evaluation, another branch."
    return WORDS[cause.kind].advice
