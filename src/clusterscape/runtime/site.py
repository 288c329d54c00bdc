"""Puts a whole site together: stores, ingest, collectors, queries. The only place that builds them."""

import asyncio
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from clusterscape import executors
from clusterscape.collect.contract import Collector
from clusterscape.collect.sharding import parse_shard
from clusterscape.ingest.pipeline import Ingest
from clusterscape.ingest.run_deletion import erase_deleted_runs
from clusterscape.ingest.runs import RunIntake, TakenIn
from clusterscape.ingest.traces import TraceIntake
from clusterscape.model import Observation, UnixMs
from clusterscape.model.jobs import JobTrace
from clusterscape.model.traces import TRACES_PREFIX, ImportedTrace
from clusterscape.query import Queries, QueryContext
from clusterscape.query.ownership import OWNER
from clusterscape.query.scheduling.description import KIND as JOB_TRACE_KIND
from clusterscape.query.scheduling.description import PREFIX as JOB_TRACES_PREFIX
from clusterscape.runtime.replicas import Follower, Replica, is_replicated
from clusterscape.runtime.steady_clock import SteadyClock
from clusterscape.settings import CollectSettings, KubernetesSettings, PrometheusSettings, Settings, SlurmSettings
from clusterscape.settings.limits import UploadLimits
from clusterscape.store.artifacts import ArtifactStore, open_artifact_store
from clusterscape.store.artifacts.quota import UploadQuota, UploadUse, count_use
from clusterscape.store.artifacts.traces import list_abouts
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.metrics.servers import open_remote_writer
from clusterscape.store.metrics.spool import SampleSpool
from clusterscape.store.metrics.spooled import SpoolSender
from clusterscape.store.records import open_record_store
from clusterscape.store.records.contract import RecordStore
from clusterscape.store.records.engines import record_engine
from clusterscape.store.records.leadership import Fence
from clusterscape.store.records.leases import Leases
from clusterscape.store.records.mirror import MirroredRecordStore
from clusterscape.supervision import BackgroundLoops
from clusterscape.warm_up import WarmUp
from clusterscape.watch.alerts import SPOOL_FILE, Alerts, build_channels
from clusterscape.watch.exporting import Exporting
from clusterscape.watch.watcher import Watch

DAY_MS = 86_400_000
UPLOAD_PREFIXES = (TRACES_PREFIX, f"{JOB_TRACES_PREFIX}/")
"""Of artifacts that users upload."""
STATISTICS_FILE = "life-statistics.bin"
EXPORT_SPOOL_FOLDER = "remote-write"
"""Below ``storage.data_dir``."""


def system_clock() -> UnixMs:
    """Now."""
    return UnixMs(time.time_ns() // 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Everything that runs in one process."""

    settings: Settings
    metrics: MetricStore
    records: RecordStore
    traces: TraceIntake
    changes: Changes
    ingest: Ingest
    alerts: Alerts
    watch: Watch
    exporting: Exporting
    queries: Queries
    clock: Callable[[], UnixMs]
    steady: SteadyClock  # for what is removed when it is old
    writer: ThreadPoolExecutor  # one thread: the only one that writes
    loops: BackgroundLoops
    warm_up: WarmUp
    replica: Replica | None = None  # where other processes work over the same stores

    async def accept(self, seen: Observation) -> None:
        """Hand an observation to ingest without holding up the event loop."""
        await asyncio.get_running_loop().run_in_executor(self.writer, self.ingest.accept, seen)

    def upkeep(self) -> Mapping[str, Callable[[], None]]:
        """The tasks of upkeep by name, each independent of the others; safe beside reading and writing."""
        tasks = {
            "metric store": self._maintain_metrics,
            "records": self._remove_old_records,
            "deleted runs": self.erase_deleted_runs,
        }
        return tasks if self.replica is None else {**tasks, "interrupted traces": self.traces.mark_interrupted}

    def _maintain_metrics(self) -> None:
        self.metrics.maintain(now_ms=self.steady.now())

    def _remove_old_records(self) -> None:
        if self.replica is None or self.replica.decides:
            keep_ms = int(self.settings.retention.coarse_days * DAY_MS)
            self.records.remove_ended_before(UnixMs(self.steady.now() - keep_ms))

    def erase_deleted_runs(self) -> None:
        """Erase what is left of runs that were deleted."""
        if self.replica is None or self.replica.decides:
            erase_deleted_runs(self.records, self.metrics, self.settings.limits.runs, now=self.clock())

    def take_over(self) -> None:
        """Begin to collect where another process did: believe the stores, not what was heard."""
        if isinstance(self.records, MirroredRecordStore):
            self.records.refresh()
        self.ingest.take_over(forgets_sources=self.replica is None or self.replica.shard.count == 1)

    def close(self) -> None:
        """Finish what is being written, then release the stores; the lock of the collector goes last."""
        if self.replica is not None:
            self.replica.stop_hearing()
        self.writer.shutdown(wait=True)
        self.traces.close()
        self.watch.close()
        self.exporting.close()
        self.metrics.close()
        self.records.close()
        if self.replica is not None:
            self.replica.close()


class SiteRuns:
    """Runs that trackers send, taken in on the writer's thread."""

    def __init__(self, site: Site) -> None:
        self._intake = RunIntake(site.ingest, site.records, clock=site.clock, limits=site.settings.limits.runs)
        self._writer = site.writer
        self._erase = site.erase_deleted_runs
        self._turn = asyncio.Semaphore(1)

    @property
    def max_piece_bytes(self) -> int:
        """How large a piece may be."""
        return self._intake.limits.piece_bytes

    async def offsets(self, run: str) -> dict[str, int]:
        """How much of each file of a run is stored."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._intake.offsets, run)

    async def take(self, run: str, file: str, offset: int, data: bytes, *, user: str | None = None) -> TakenIn:
        """Store a piece of a file; of a run of ``user``, where one is named."""
        take = partial(self._intake.take, run, file, offset, data, user=user)
        async with self._turn:  # a scrape waits for one piece of a run at most, however many come
            return await asyncio.get_running_loop().run_in_executor(self._writer, take)

    async def delete(self, run: str, *, user: str | None = None) -> None:
        """Forget a run; of ``user``, where one is named. Its samples are erased beside what is written."""
        async with self._turn:
            delete = partial(self._intake.delete, run, user=user)
            await asyncio.get_running_loop().run_in_executor(self._writer, delete)
        await executors.UPKEEP.run(self._erase)


def open_site(settings: Settings, *, is_demo: bool = False, clock: Callable[[], UnixMs] = system_clock) -> Site:
    """Open the stores and connect everything to them."""
    fence, loops, warm_up = Fence(), BackgroundLoops(), WarmUp()
    replica = Replica(settings, fence, loops) if is_replicated(settings) else None
    metrics = open_metric_store(
        settings.storage,
        settings.retention,
        cluster=settings.cluster,
        spools=settings.server.role != "web",
        loops=loops,
    )
    try:
        records = MirroredRecordStore(open_record_store(settings.storage, fence=fence))
    except BaseException:
        metrics.close()
        raise
    # Versions begin at the second of the start: a page from before a restart never takes an old number for a new one.
    changes = Changes(first=clock() // 1000)
    alerts = Alerts(
        build_channels(settings.alerts, cluster=settings.cluster, clock=clock),
        settings.storage.data_dir / SPOOL_FILE,
        clock=clock,
        loops=loops,
    )

    def decides() -> bool:
        return replica is None or replica.decides

    watch = Watch(
        records=records,
        metrics=metrics,
        changes=changes,
        clock=clock,
        checkpoint=settings.storage.data_dir / STATISTICS_FILE,
        alerts=alerts,
        scrape_s=_fastest_scrape_s(settings.collect),
        decides=decides,
        loops=loops,
        warm_up=warm_up,
    )
    exporting = _open_exporting(settings, records, metrics, watch, clock, decides, loops)
    ingest = Ingest(
        metrics,
        records,
        changes,
        clock=clock,
        listeners=[watch, exporting],
        is_alone=replica is None,
        node_names=settings.collect.node_names,
        shard=settings.collect.shard,
        limits=settings.limits.sources,
    )
    writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ingest")
    if replica is not None:
        follower = Follower(
            records=records, metrics=metrics, ingest=ingest, watch=watch, writer=writer, clock=clock, loops=loops
        )
        replica.join(changes, follower.take)
    slowest = max(c.interval_s for c in (settings.collect.dcgm, settings.collect.prometheus, settings.collect.nvml))
    artifacts = open_artifacts(settings)
    quota = open_upload_quota(settings, artifacts, records)
    context = QueryContext(
        metrics=metrics,
        records=records,
        changes=changes,
        clock=clock,
        cluster=settings.cluster,
        is_demo=is_demo,
        # Four missed scrapes, and the rest is not "now" any more.
        lookback_ms=int(max(60.0, 4 * slowest) * 1000),
        collects=lambda: replica is None or replica.collects,
        awaited=ingest.awaited,
        artifacts=artifacts,
        read_job_trace=_open_job_trace_reader(settings.limits.uploads),
        is_private=settings.site.visibility == "private",
        work=settings.limits.work,
        uploads=settings.limits.uploads,
        items=settings.limits.items,
        quota=quota,
        loops=loops,
        warm_up=warm_up,
    )
    return Site(
        settings=settings,
        metrics=metrics,
        records=records,
        traces=open_trace_intake(settings, artifacts, clock, quota=quota),
        changes=changes,
        ingest=ingest,
        alerts=alerts,
        watch=watch,
        exporting=exporting,
        queries=Queries(context, ingest, watch=watch),
        clock=clock,
        steady=SteadyClock(clock),
        writer=writer,
        loops=loops,
        warm_up=warm_up,
        replica=replica,
    )


def _open_exporting(
    settings: Settings,
    records: RecordStore,
    metrics: MetricStore,
    watch: Watch,
    clock: Callable[[], UnixMs],
    decides: Callable[[], bool],
    loops: BackgroundLoops,
) -> Exporting:
    """What sends our own metrics to ``remote_write.url``, where one is named and this process may collect."""
    target = settings.remote_write
    writer = None if settings.server.role == "web" else open_remote_writer(target, {"cluster": settings.cluster})
    sender = None
    if writer is not None:
        spool = SampleSpool(settings.storage.data_dir / EXPORT_SPOOL_FOLDER, max_bytes=target.spool_bytes)
        sender = SpoolSender(spool, writer.write, server="remote_write.url", is_direct=False, loops=loops)
    return Exporting(
        target,
        sender,
        records=records,
        metrics=metrics,
        book=watch.book,
        clock=clock,
        decides=decides,
        loops=loops,
    )


def _open_job_trace_reader(limits: UploadLimits) -> Callable[[Path, str | None, str], JobTrace]:
    """Reads uploaded job traces, one at a time: a large one takes gigabytes while it is read."""
    lock = threading.Lock()

    def read(path: Path, format: str | None, timezone: str) -> JobTrace:
        from clusterscape.collect.job_traces import read_trace

        with lock:
            return read_trace(path, format, timezone=timezone, limits=limits)

    return read


def open_artifacts(settings: Settings) -> ArtifactStore:
    """Where whole files are kept."""
    return open_artifact_store(settings.storage, min_free_bytes=settings.limits.uploads.min_free_bytes)


def open_trace_intake(
    settings: Settings,
    artifacts: ArtifactStore,
    clock: Callable[[], UnixMs] = system_clock,
    *,
    scheduler: str | None = None,
    quota: UploadQuota | None = None,
) -> TraceIntake:
    """What takes traces in; they are read in a process of their own, or on the Dask cluster of a scheduler.

    ``quota``: of files that users upload, with the limits of what is read of them.
    """
    limits = None if quota is None else quota.limits
    stopped = threading.Event()

    def import_trace(paths: Sequence[Path], folder: Path, progress: Callable[[float], None]) -> ImportedTrace:
        from clusterscape.runtime.trace_importing import import_apart  # multiprocessing is not free to import

        return import_apart(paths, folder, progress, stopped.is_set, scheduler, limits)

    return TraceIntake(
        artifacts,
        import_trace,
        clock=clock,
        token=lambda: secrets.token_hex(3),
        on_close=stopped.set,
        scratch=settings.storage.data_dir,
        max_upload_bytes=settings.storage.max_upload_bytes,
        leases=Leases(record_engine(settings.storage)) if is_replicated(settings) else None,
        quota=quota,
    )


def _owner_of(body: Mapping[str, object]) -> str | None:
    owner = body.get(OWNER)
    return owner if isinstance(owner, str) else None


def open_upload_quota(settings: Settings, artifacts: ArtifactStore, records: RecordStore) -> UploadQuota:
    """How much of the disk, or of the bucket, uploads may take."""
    storage = settings.storage

    def count() -> UploadUse:
        artifacts.remove_unfinished()
        owners = {f"{TRACES_PREFIX}{about.trace_id}": about.owned_by for about in list_abouts(artifacts)}
        job_traces = records.documents(JOB_TRACE_KIND)
        owners |= {f"{JOB_TRACES_PREFIX}/{each.key}": _owner_of(each.body) for each in job_traces}
        return count_use(artifacts, owners, UPLOAD_PREFIXES)

    def find_free() -> int:
        disk = os.statvfs(storage.data_dir)
        return disk.f_bavail * disk.f_frsize

    return UploadQuota(settings.limits.uploads, count, find_free=find_free if storage.artifacts == "folder" else None)


def _fastest_scrape_s(collect: CollectSettings) -> float:
    """Of the sources that are configured."""
    used = [
        section.interval_s
        for section, is_used in (
            (collect.dcgm, bool(collect.dcgm.targets or collect.dcgm.targets_file or collect.dcgm.dns)),
            (collect.prometheus, bool(collect.prometheus.url)),
            (collect.nvml, collect.nvml.enabled),
        )
        if is_used
    ]
    return min(used, default=15.0)


def build_collectors(settings: Settings, clock: Callable[[], UnixMs] = system_clock) -> list[Collector]:
    """A collector for every source that is configured. Imports only what is used: the start stays quick.

    Of several shards, each has its share of the exporters; the first one alone reads schedulers and Prometheus.
    """
    collect, limits = settings.collect, settings.limits.sources
    shard = parse_shard(collect.shard)
    if not shard.is_first:
        unshared = {"slurm": SlurmSettings(), "kubernetes": KubernetesSettings(), "prometheus": PrometheusSettings()}
        collect = collect.model_copy(update=unshared)
    collectors: list[Collector] = []
    if collect.dcgm.targets or collect.dcgm.targets_file or collect.dcgm.dns:
        from clusterscape.collect.dcgm import DcgmCollector

        collectors.append(DcgmCollector(collect.dcgm, clock, owns=shard.owns, limits=limits))
    if collect.slurm.mode != "off":
        from clusterscape.collect.slurm import SlurmCollector

        collectors.append(SlurmCollector(collect.slurm, clock, limits=limits))
    if collect.kubernetes.mode != "off":
        from clusterscape.collect.kubernetes import KubernetesCollector

        collectors.append(KubernetesCollector(collect.kubernetes, clock, limits=limits))
    if collect.prometheus.url:
        from clusterscape.collect.prometheus import PrometheusCollector

        collectors.append(PrometheusCollector(collect.prometheus, clock, limits=limits))
    if collect.nvml.enabled:
        import socket

        from clusterscape.collect.nvml import NvmlCollector

        collectors.append(NvmlCollector(collect.nvml, clock, socket.gethostname().partition(".")[0]))
    return collectors
