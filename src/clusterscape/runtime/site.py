"""Builds a whole site: stores, ingest, collectors, queries, services. The only place that builds them."""

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
from clusterscape.collect.targets import parse_shard
from clusterscape.executors import Compute
from clusterscape.ingest.pipeline import Ingest
from clusterscape.ingest.run_usage import erase_deleted_runs
from clusterscape.ingest.runs import RunIntake, StoredPiece
from clusterscape.ingest.traces import TraceIntake
from clusterscape.model import Observation, UnixMs
from clusterscape.model.durations import DAY_MS
from clusterscape.model.jobs import JobTrace
from clusterscape.model.traces import TRACES_PREFIX, ImportedTrace
from clusterscape.query import Queries, QueryContext
from clusterscape.query.ownership import OWNER
from clusterscape.query.scheduling.description import KIND as JOB_TRACE_KIND
from clusterscape.query.scheduling.description import PREFIX as JOB_TRACES_PREFIX
from clusterscape.runtime.replicas import Follower, Replica, is_replicated
from clusterscape.runtime.steady_clock import SteadyClock
from clusterscape.runtime.worker_process import WorkerProcesses
from clusterscape.services import ServiceContext, Services
from clusterscape.services.site_secret import ensure_secret
from clusterscape.settings import CollectSettings, KubernetesSettings, PrometheusSettings, Settings, SlurmSettings
from clusterscape.settings.limits import UploadLimits
from clusterscape.store.artifacts import ArtifactStore, open_artifact_store
from clusterscape.store.artifacts.quota import UploadQuota, UploadUse, count_use
from clusterscape.store.artifacts.traces import list_abouts
from clusterscape.store.changes import Changes
from clusterscape.store.metrics import open_metric_store
from clusterscape.store.metrics.contract import MetricStore
from clusterscape.store.metrics.spool import SampleSpool, SpoolSender
from clusterscape.store.metrics.victoria import open_remote_writer
from clusterscape.store.records import open_record_store
from clusterscape.store.records.advisory_locks import Fence, Leases
from clusterscape.store.records.contract import RecordStore
from clusterscape.store.records.engines import record_engine
from clusterscape.store.records.mirror import MirroredRecordStore
from clusterscape.supervision import BackgroundLoops
from clusterscape.warm_up import WarmUp
from clusterscape.watch.alerts import SPOOL_FILE, Alerts, build_channels
from clusterscape.watch.exporting import RemoteWriteExporter
from clusterscape.watch.watcher import Watch

UPLOAD_PREFIXES = (TRACES_PREFIX, f"{JOB_TRACES_PREFIX}/")
"""Prefixes of artifacts that users upload."""
STATISTICS_FILE = "life-statistics.bin"
EXPORT_SPOOL_FOLDER = "remote-write"
"""Below ``storage.data_dir``."""


def system_clock() -> UnixMs:
    """The current time."""
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
    exporting: RemoteWriteExporter
    queries: Queries
    services: Services
    clock: Callable[[], UnixMs]
    steady: SteadyClock  # for retention
    writer: ThreadPoolExecutor  # the only thread that writes
    workers: WorkerProcesses  # for long computations
    loops: BackgroundLoops
    warm_up: WarmUp
    replica: Replica | None = None  # if other processes use the same stores

    async def accept(self, observation: Observation) -> None:
        """Pass an observation to ingest without blocking the event loop."""
        await asyncio.get_running_loop().run_in_executor(self.writer, self.ingest.accept, observation)

    def upkeep(self) -> Mapping[str, Callable[[], None]]:
        """The tasks of upkeep by name, independent of each other; safe during reads and writes."""
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
        """Erase remaining data of deleted runs."""
        if self.replica is None or self.replica.decides:
            erase_deleted_runs(self.records, self.metrics, self.settings.limits.runs, now=self.clock())

    def take_over(self) -> None:
        """Take over collection from another process: reload the state from the stores."""
        if isinstance(self.records, MirroredRecordStore):
            self.records.refresh()
        self.ingest.take_over(forgets_sources=self.replica is None or self.replica.shard.count == 1)

    def close(self) -> None:
        """Finish pending writes, then close the stores; release the collector's lock last."""
        if self.replica is not None:
            self.replica.leave()
        self.workers.close()
        self.writer.shutdown(wait=True)
        self.traces.close()
        self.watch.close()
        self.exporting.close()
        self.metrics.close()
        self.records.close()
        if self.replica is not None:
            self.replica.close()


class SiteRuns:
    """Stores runs that trackers send, on the writer thread."""

    def __init__(self, site: Site) -> None:
        self._intake = RunIntake(site.ingest, site.records, clock=site.clock, limits=site.settings.limits.runs)
        self._writer = site.writer
        self._erase = site.erase_deleted_runs
        self._turn = asyncio.Semaphore(1)

    @property
    def max_piece_bytes(self) -> int:
        """The maximum size of a piece."""
        return self._intake.limits.piece_bytes

    async def offsets(self, run: str) -> dict[str, int]:
        """The number of stored bytes of each file of a run."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._intake.offsets, run)

    async def take(self, run: str, file: str, offset: int, data: bytes, *, user: str | None = None) -> StoredPiece:
        """Store a piece of a file; with ``user``, only of a run that they own."""
        take = partial(self._intake.take, run, file, offset, data, user=user)
        async with self._turn:  # a scrape waits for at most one piece of a run
            return await asyncio.get_running_loop().run_in_executor(self._writer, take)

    async def delete(self, run: str, *, user: str | None = None) -> None:
        """Delete a run; with ``user``, only one that they own. Its samples are erased in the background."""
        async with self._turn:
            delete = partial(self._intake.delete, run, user=user)
            await asyncio.get_running_loop().run_in_executor(self._writer, delete)
        await executors.UPKEEP.run(self._erase)


def open_site(
    settings: Settings,
    *,
    is_demo: bool = False,
    clock: Callable[[], UnixMs] = system_clock,
    compute: Compute | None = None,
) -> Site:
    """Open the stores and connect everything to them. ``compute``: where long simulations run; None: worker processes."""
    fence, loops, warm_up = Fence(), BackgroundLoops(), WarmUp()
    work = settings.limits.work
    workers = WorkerProcesses(work.processes, memory_bytes=work.process_memory_bytes, loops=loops)
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
    # Versions start at the time of the start in seconds, so that a page that is open across a restart never reuses a version.
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
    exporting = _open_exporter(settings, records, metrics, watch, clock, decides, loops)
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
        replica.join(changes, follower.apply)
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
        # After four missed scrapes a value is not current any more.
        lookback_ms=int(max(60.0, 4 * slowest) * 1000),
        collects=lambda: replica is None or replica.collects,
        awaited=ingest.awaited,
        artifacts=artifacts,
        read_job_trace=_open_job_trace_reader(settings.limits.uploads),
        is_private=settings.site.visibility == "private",
        work=settings.limits.work,
        uploads=settings.limits.uploads,
        accounting=settings.accounting,
        loops=loops,
        compute=compute or workers.compute,
        warm_up=warm_up,
    )
    if context.is_private:
        ensure_secret(records, clock)
    queries = Queries(context, ingest, watch=watch)
    service_context = ServiceContext(
        reads=context, records=records, artifacts=artifacts, quota=quota, items=settings.limits.items
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
        queries=queries,
        services=Services(queries, service_context),
        clock=clock,
        steady=SteadyClock(clock),
        writer=writer,
        workers=workers,
        loops=loops,
        warm_up=warm_up,
        replica=replica,
    )


def _open_exporter(
    settings: Settings,
    records: RecordStore,
    metrics: MetricStore,
    watch: Watch,
    clock: Callable[[], UnixMs],
    decides: Callable[[], bool],
    loops: BackgroundLoops,
) -> RemoteWriteExporter:
    """The exporter to ``remote_write.url``, which sends only if the setting is set and this process may collect."""
    target = settings.remote_write
    writer = None if settings.server.role == "web" else open_remote_writer(target, {"cluster": settings.cluster})
    sender = None
    if writer is not None:
        spool = SampleSpool(settings.storage.data_dir / EXPORT_SPOOL_FOLDER, max_bytes=target.spool_bytes)
        sender = SpoolSender(spool, writer.write, server="remote_write.url", is_direct=False, loops=loops)
    return RemoteWriteExporter(
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
    """A reader of uploaded job traces in a child process, one at a time: reading a large one takes gigabytes of memory."""
    lock = threading.Lock()

    def read(path: Path, format: str | None, timezone: str) -> JobTrace:
        from clusterscape.runtime.trace_importing import (
            read_job_trace_in_subprocess,
        )  # multiprocessing is slow to import

        with lock:
            return read_job_trace_in_subprocess(path, format, timezone, limits)

    return read


def open_artifacts(settings: Settings) -> ArtifactStore:
    """Open the artifact store."""
    return open_artifact_store(settings.storage, min_free_bytes=settings.limits.uploads.min_free_bytes)


def open_trace_intake(
    settings: Settings,
    artifacts: ArtifactStore,
    clock: Callable[[], UnixMs] = system_clock,
    *,
    scheduler: str | None = None,
    quota: UploadQuota | None = None,
) -> TraceIntake:
    """The intake of traces, which are imported in a child process or on the Dask cluster of ``scheduler``.

    ``quota``: quota of uploaded files, with the limits of imports.
    """
    limits = None if quota is None else quota.limits
    stopped = threading.Event()

    def import_trace(paths: Sequence[Path], folder: Path, progress: Callable[[float], None]) -> ImportedTrace:
        from clusterscape.runtime.trace_importing import import_in_subprocess  # multiprocessing is slow to import

        return import_in_subprocess(paths, folder, progress, stopped.is_set, scheduler, limits)

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
    """The quota of uploads on the disk or in the bucket."""
    storage = settings.storage

    def count() -> UploadUse:
        artifacts.remove_unfinished()
        owners = {f"{TRACES_PREFIX}{about.trace_id}": about.owned_by for about in list_abouts(artifacts)}
        job_traces = records.documents(JOB_TRACE_KIND)
        owners |= {f"{JOB_TRACES_PREFIX}/{document.key}": _owner_of(document.body) for document in job_traces}
        return count_use(artifacts, owners, UPLOAD_PREFIXES)

    def find_free() -> int:
        disk = os.statvfs(storage.data_dir)
        return disk.f_bavail * disk.f_frsize

    return UploadQuota(settings.limits.uploads, count, find_free=find_free if storage.artifacts == "folder" else None)


def _fastest_scrape_s(collect: CollectSettings) -> float:
    """The shortest scrape interval of the configured sources."""
    intervals = [
        section.interval_s
        for section, is_used in (
            (collect.dcgm, bool(collect.dcgm.targets or collect.dcgm.targets_file or collect.dcgm.dns)),
            (collect.prometheus, bool(collect.prometheus.url)),
            (collect.nvml, collect.nvml.enabled),
        )
        if is_used
    ]
    return min(intervals, default=15.0)


def build_collectors(settings: Settings, clock: Callable[[], UnixMs] = system_clock) -> list[Collector]:
    """Build a collector for every configured source. Imports only what is used, for a fast start.

    With several shards, each reads its share of the exporters; only the first reads schedulers and Prometheus.
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
