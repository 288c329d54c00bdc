"""Limits on what one client, one user or one source may take of the server. docs/design/access.md lists what each bounds."""

from pydantic import Field

from clusterscape.settings.section import Section


class HttpLimits(Section):
    """Requests and connections, before anybody is identified. What is refused is counted in `/metrics`."""

    url_bytes: int = Field(
        64 * 1024, ge=1024, le=2**20, description="Bytes of a request's address. Beyond: 414, and the connection ends."
    )
    header_bytes: int = Field(
        64 * 1024, ge=1024, le=2**20, description="Bytes of a request's headers. Beyond: 431, and the connection ends."
    )
    headers: int = Field(
        100, ge=10, le=10_000, description="Headers of a request. Beyond: 431, and the connection ends."
    )
    head_s: float = Field(
        20.0,
        gt=0,
        le=3600,
        description="Seconds within which address and headers arrive. Beyond: 408, and the connection ends.",
    )
    body_bytes: int = Field(
        8 * 2**20,
        ge=1024,
        le=2**30,
        description="Bytes of a body. Beyond: 413. Uploads have `storage.max_upload_bytes` instead.",
    )
    session_body_bytes: int = Field(
        16 * 1024, ge=1024, le=2**20, description="Bytes of a body that signs in, which anybody may send. Beyond: 413."
    )
    held_body_bytes: int = Field(
        128 * 2**20,
        ge=2**20,
        le=2**36,
        description="Bytes of bodies in memory, of all requests together. Beyond: 429.",
    )
    body_stall_s: float = Field(
        30.0, gt=0, le=3600, description="Seconds without a byte of a body. Beyond: 408, and the connection ends."
    )
    bytes_per_s: int = Field(
        1024,
        ge=0,
        le=2**30,
        description="Least average rate of a body (after its first `body_stall_s`) and of an answer (`write_stall_s`).",
    )
    write_stall_s: float = Field(
        60.0,
        gt=0,
        le=3600,
        description="Seconds in which a client takes nothing of an answer that waits for it; then the connection ends.",
    )
    connections: int = Field(
        4096,
        ge=1,
        le=1_000_000,
        description="Open connections, at most half of the files that the system grants. Beyond: 503.",
    )
    connections_per_address: int = Field(
        2048, ge=1, le=1_000_000, description="Open connections of one address (IPv6: of one /64). Beyond: 503."
    )
    pipelined: int = Field(
        16,
        ge=0,
        le=1000,
        description="Requests of one connection that wait for the answer before. Beyond: the connection ends after them.",
    )


class WorkLimits(Section):
    """Expensive requests, uploads and simulations that run at the same time. Beyond: 429, with the time to try again."""

    request_threads: int = Field(40, ge=4, le=1000, description="Threads that answer requests.")
    at_once: int = Field(
        4,
        ge=1,
        le=500,
        description="Expensive requests that run, and half as many simulations; one user has half of them, and one simulation.",
    )
    waiting: int = Field(
        128, ge=0, le=10_000, description="Expensive requests that wait, of all users; the same for uploads."
    )
    per_user: int = Field(
        32,
        ge=1,
        le=10_000,
        description="Expensive requests of one user (without a name: of one address) that run or wait.",
    )
    wait_s: float = Field(60.0, gt=0, le=3600, description="Seconds that an expensive request waits at most.")
    uploads_at_once: int = Field(
        8, ge=1, le=500, description="Uploads that are received; each has a thread of its own."
    )
    uploads_per_user: int = Field(3, ge=1, le=500, description="Uploads of one user that are received; others wait.")
    upload_stall_s: float = Field(
        30.0, gt=0, le=3600, description="Seconds within which an upload brings another 64 KiB; else it is ended (408)."
    )
    runs_per_user: int = Field(
        8, ge=1, le=1000, description="What-ifs of one user that run or wait in the background; simulations likewise."
    )
    runs_waiting: int = Field(64, ge=1, le=10_000, description="The same of all users.")


class UploadLimits(Section):
    """Files that users upload: how many, how large, and how large once unpacked. Beyond: 413, and nothing is kept."""

    job_trace_bytes: int = Field(2**30, ge=1, description="Largest job trace as it is sent, compressed or not.")
    job_trace_unpacked_bytes: int = Field(2 * 2**30, ge=1, description="Largest job trace once decompressed.")
    job_trace_rows: int = Field(5_000_000, ge=1, description="Lines of a job trace, or jobs of one in JSON.")
    job_trace_cells: int = Field(500_000_000, ge=1, description="Lines times columns of a job trace.")
    job_trace_columns: int = Field(512, ge=1, description="Columns of a job trace.")
    job_trace_line_bytes: int = Field(
        2**20, ge=1024, description="Longest line of a job trace, or longest job of one in JSON."
    )
    kept: int = Field(5_000, ge=1, description="Traces and job traces that are kept, of all users. Beyond: 507.")
    kept_per_user: int = Field(
        200, ge=1, description="The same of one user. Beyond: 413. Operators have only the former."
    )
    kept_bytes: int = Field(500 * 2**30, ge=1, description="Bytes of all traces and job traces. Beyond: 507.")
    kept_bytes_per_user: int = Field(100 * 2**30, ge=1, description="Bytes of those of one user. Beyond: 413.")
    min_free_bytes: int = Field(
        5 * 2**30,
        ge=0,
        description="Uploads are refused (507) while the device of `data_dir` has less free, long before collection pauses.",
    )
    trace_file_unpacked_bytes: int = Field(
        8 * 2**30, ge=1, description="Largest file of a run's trace, such as one rank's, once decompressed."
    )
    trace_files: int = Field(20_000, ge=1, description="Files of one trace, those within archives included.")
    trace_file_spans: int = Field(
        100_000_000, ge=1, description="Rows of one file of a trace that is a database or a Parquet table."
    )
    import_memory_bytes: int | None = Field(
        None, ge=2**28, description="Memory of the process that reads a trace; by default half of the machine's."
    )
    import_s: float = Field(3600.0, gt=0, description="Seconds that reading a trace may take.")
    unpacked_ratio: float = Field(
        200.0,
        ge=1,
        description="Times its own size that a compressed file may have once decompressed; its first 16 MiB are not judged.",
    )


class ItemLimits(Section):
    """What users write and keep. Beyond: 413, until something is deleted; operators have only the limits of the site."""

    views: int = Field(1_000, ge=1, description="Saved views of the site; the same for insights.")
    views_per_user: int = Field(100, ge=1, description="Saved views of one user; the same for insights.")
    comments: int = Field(50_000, ge=1, description="Comments of the site.")
    comments_per_user: int = Field(2_000, ge=1, description="Comments of one user.")
    comments_per_workload: int = Field(500, ge=1, description="Comments on one workload.")
    mutes: int = Field(2_000, ge=1, description="Mutes that have not expired.")
    tokens_per_user: int = Field(50, ge=1, description="API tokens of one user that hold.")
    new_tokens_per_day: int = Field(200, ge=1, description="API tokens that one user may make within a day.")
    sessions_per_user: int = Field(
        50, ge=1, description="Browsers in which one user is signed in; the one unused for longest is signed out."
    )


class RunLimits(Section):
    """What tracked runs may send. What is too large is refused (413, 422); of what is too many, the first are kept.

    What was left out is counted and shown with the run.
    """

    piece_bytes: int = Field(
        16 * 2**20, ge=2**20, le=2**30, description="Bytes of one piece of a run's file, as it is sent. Beyond: 413."
    )
    piece_frames: int = Field(
        2000, ge=100, le=10_000_000, description="Frames taken of one piece; the sender goes on with the rest."
    )
    piece_samples: int = Field(
        100_000, ge=1000, le=100_000_000, description="Samples taken of one piece; the sender goes on with the rest."
    )
    event_bytes: int = Field(
        8 * 2**20, ge=2**16, le=2**26, description="Bytes of one event, such as the environment of a run. Beyond: 413."
    )
    frame_samples: int = Field(
        100_000,
        ge=100_000,
        le=2_000_000,
        description="Samples of one frame, once unpacked; trackers write at most 100,000. Beyond: 413.",
    )
    files: int = Field(
        5000, ge=1, le=1_000_000, description="Files of one run; each of its processes writes one. Beyond: 413."
    )
    series: int = Field(
        2000, ge=1, le=100_000, description="Series (metric and place) of one run; samples of others are left out."
    )
    series_per_user: int = Field(
        500_000, ge=1, description="Series of all runs of one user together; samples of others are left out."
    )
    names_per_user: int = Field(
        20_000, ge=1, description="Names of metrics in all runs of one user; samples of others are left out."
    )
    params: int = Field(1000, ge=1, le=100_000, description="Parameters of one run, and tags; others are left out.")
    param_chars: int = Field(
        6000, ge=100, le=1_000_000, description="Characters of the value of a parameter or tag; longer ones are cut."
    )
    text_chars: int = Field(
        256 * 1024,
        ge=1000,
        le=2**26,
        description="Characters of a run's parameters, tags and command together; what comes after is left out.",
    )
    marks: int = Field(
        10_000, ge=1, le=1_000_000, description="Epochs and phases marked in one run; others are left out."
    )
    devices: int = Field(128, ge=1, le=1024, description="GPUs or MIG instances of one run; others are left out.")
    span_days: float = Field(
        366.0,
        gt=0,
        le=3660,
        description="Days from when a run was queued within which its samples lie; others are left out.",
    )
    future_s: float = Field(
        3600.0,
        ge=0,
        le=86_400,
        description="Seconds that a run's clock may be ahead of the server's; later samples are left out.",
    )
    per_user: int = Field(
        20_000, ge=1, description="Runs of one user that are stored. Beyond: 413, until some are deleted."
    )
    new_per_day: int = Field(2000, ge=1, description="Runs of one user that are created within 24 hours. Beyond: 429.")
    bytes_per_user: int = Field(
        200 * 2**30,
        ge=2**20,
        description="Bytes of one user's runs as trackers sent them, unpacked (a sample has 28). Beyond: 413.",
    )
    deleted_days: float = Field(
        30.0, ge=0, le=3660, description="Days within which nobody can send a run again that was deleted (410)."
    )


class SourceLimits(Section):
    """What collectors accept from sources. Beyond: the rest is dropped, counted and reported; what was known stays collected."""

    scrape_bytes: int = Field(32 * 2**20, ge=2**16, description="Largest answer of an exporter; beyond, it fails.")
    answer_bytes: int = Field(
        512 * 2**20,
        ge=2**20,
        description="Largest answer of Slurm, Kubernetes or Prometheus to one question, decompressed; beyond, it fails.",
    )
    line_bytes: int = Field(64 * 2**10, ge=1024, description="Longest line of an exporter.")
    label_length: int = Field(
        1024, ge=64, description="Longest value of a label, and longest name of a node, user, project or workload."
    )
    series_per_target: int = Field(50_000, ge=100, description="Series of one exporter; those known before come first.")
    series: int = Field(
        1_000_000, ge=1000, le=2_000_000, description="Series of a Prometheus; those known before come first."
    )
    nodes: int = Field(20_000, ge=1, description="Nodes of the site.")
    units_per_node: int = Field(1024, ge=1, description="GPUs and MIG instances of one node.")
    units: int = Field(200_000, ge=1, description="GPUs and MIG instances of the site.")
    new_units_per_round: int = Field(20_000, ge=1, description="GPUs and MIG instances that are new in one round.")
    new_units_per_day: int = Field(200_000, ge=1, description="GPUs and MIG instances that are new within a day.")
    holders_per_unit: int = Field(128, ge=1, description="Jobs or pods that labels of exporters name for one GPU.")
    new_holders_per_unit_per_day: int = Field(
        5_000, ge=1, description="Jobs or pods that are new in labels of one GPU within a day."
    )
    new_holders_per_day: int = Field(
        1_000_000, ge=1, description="Jobs or pods that are new in labels of all exporters within a day."
    )
    partitions: int = Field(5_000, ge=1, description="Partitions and queues of one scheduler.")
    workloads: int = Field(
        200_000, ge=1, description="Active workloads of one scheduler, and workloads in one answer of accounting."
    )
    new_workloads_per_day: int = Field(
        2_000_000, ge=1, description="Workloads of one scheduler that are new within a day."
    )
    objects: int = Field(500_000, ge=1, description="Objects of one kind that a Kubernetes API server has.")


class LimitsSettings(Section):
    """Bounds on requests, work, uploads, what users keep, runs and sources."""

    http: HttpLimits = HttpLimits()
    work: WorkLimits = WorkLimits()
    uploads: UploadLimits = UploadLimits()
    items: ItemLimits = ItemLimits()
    runs: RunLimits = RunLimits()
    sources: SourceLimits = SourceLimits()
