"""Limits per client, user and source. docs/design/access.md lists what each bounds."""

from pydantic import Field

from clusterscape.settings.section import Section


class HttpLimits(Section):
    """Requests and connections, before authentication. `/metrics` counts refusals."""

    url_bytes: int = Field(
        64 * 1024, ge=1024, le=2**20, description="Request URL size. Larger: 414, connection closed."
    )
    header_bytes: int = Field(
        64 * 1024, ge=1024, le=2**20, description="Total size of request headers. Larger: 431, connection closed."
    )
    headers: int = Field(100, ge=10, le=10_000, description="Number of request headers. More: 431, connection closed.")
    header_timeout_s: float = Field(
        20.0,
        gt=0,
        le=3600,
        description="Seconds to receive the request line and headers. Longer: 408, connection closed.",
    )
    body_bytes: int = Field(
        8 * 2**20,
        ge=1024,
        le=2**30,
        description="Request body size. Larger: 413. For uploads, see `storage.max_upload_bytes`.",
    )
    session_body_bytes: int = Field(
        16 * 1024,
        ge=1024,
        le=2**20,
        description="Body size of sign-in requests, which need no authentication. Larger: 413.",
    )
    buffered_body_bytes: int = Field(
        128 * 2**20,
        ge=2**20,
        le=2**36,
        description="Total size of request bodies in memory. Larger: 429.",
    )
    body_timeout_s: float = Field(
        30.0, gt=0, le=3600, description="Seconds between two reads of a request body. Longer: 408, connection closed."
    )
    min_bytes_per_s: int = Field(
        1024,
        ge=0,
        le=2**30,
        description="Minimum average rate of request bodies (after `body_timeout_s`) and of responses (after `write_timeout_s`).",
    )
    write_timeout_s: float = Field(
        60.0,
        gt=0,
        le=3600,
        description="Seconds between two writes of a response to a slow client. Longer: connection closed.",
    )
    connections: int = Field(
        4096,
        ge=1,
        le=1_000_000,
        description="Open connections; never more than half of the open-file limit. More: 503.",
    )
    connections_per_address: int = Field(
        2048, ge=1, le=1_000_000, description="Open connections per client address (IPv6: per /64). More: 503."
    )
    pipelined: int = Field(
        16,
        ge=0,
        le=1000,
        description="Pipelined requests per connection. More: connection closed after the last of them.",
    )


class WorkLimits(Section):
    """Concurrency of expensive requests, uploads and simulations. More: 429 with `Retry-After`."""

    request_threads: int = Field(40, ge=4, le=1000, description="Threads that serve requests.")
    concurrent_requests: int = Field(
        4,
        ge=1,
        le=500,
        description="Expensive requests that run at the same time, and half as many simulations. One user gets half of the "
        "requests, and one simulation.",
    )
    queued_requests: int = Field(
        128, ge=0, le=10_000, description="Expensive requests in the queue, of all users; likewise uploads."
    )
    requests_per_user: int = Field(
        32,
        ge=1,
        le=10_000,
        description="Expensive requests of one user (anonymous: of one address), running and queued.",
    )
    queue_timeout_s: float = Field(
        60.0, gt=0, le=3600, description="Seconds that an expensive request may wait in the queue."
    )
    concurrent_uploads: int = Field(8, ge=1, le=500, description="Uploads received at the same time, one thread each.")
    uploads_per_user: int = Field(
        3, ge=1, le=500, description="Uploads of one user at the same time; others are queued."
    )
    upload_timeout_s: float = Field(
        30.0, gt=0, le=3600, description="Seconds to receive the next 64 KiB of an upload. Longer: 408."
    )
    simulations_per_user: int = Field(
        8, ge=1, le=1000, description="Background what-ifs of one user, running and queued; likewise simulations."
    )
    queued_simulations: int = Field(
        64, ge=1, le=10_000, description="Background what-ifs in the queue, of all users; likewise simulations."
    )
    processes: int = Field(
        2,
        ge=1,
        le=64,
        description="Child processes for simulations, statistics of job traces and other long computations, one each at a time.",
    )
    process_memory_bytes: int | None = Field(
        None,
        ge=2**28,
        description="Memory of one such process. More: it is killed, and the request gets 413. By default all together may take "
        "half of the machine's memory.",
    )


class UploadLimits(Section):
    """Uploaded files: number, size, and size after decompression. Larger: 413, and nothing is stored."""

    job_trace_bytes: int = Field(2**30, ge=1, description="Maximum size of a job trace as uploaded, compressed or not.")
    job_trace_unpacked_bytes: int = Field(
        2 * 2**30, ge=1, description="Maximum size of a job trace after decompression."
    )
    job_trace_rows: int = Field(5_000_000, ge=1, description="Lines of a job trace; in JSON, jobs.")
    job_trace_cells: int = Field(500_000_000, ge=1, description="Lines times columns of a job trace.")
    job_trace_columns: int = Field(512, ge=1, description="Columns of a job trace.")
    job_trace_line_bytes: int = Field(
        2**20, ge=1024, description="Maximum length of a line of a job trace; in JSON, of a job."
    )
    stored_traces: int = Field(5_000, ge=1, description="Stored traces and job traces, of all users. More: 507.")
    stored_traces_per_user: int = Field(
        200, ge=1, description="Stored traces and job traces of one user, except operators. More: 413."
    )
    stored_files_per_user: int = Field(
        100_000, ge=1, description="Files of the stored traces and job traces of one user. More: 413."
    )
    stored_bytes: int = Field(500 * 2**30, ge=1, description="Total size of stored traces and job traces. Larger: 507.")
    stored_bytes_per_user: int = Field(
        100 * 2**30, ge=1, description="Total size of the traces and job traces of one user. Larger: 413."
    )
    min_free_bytes: int = Field(
        5 * 2**30,
        ge=0,
        description="Uploads are refused (507) while the disk of `data_dir` has less free space than this. Collection continues.",
    )
    trace_file_unpacked_bytes: int = Field(
        8 * 2**30, ge=1, description="Maximum size of one trace file, such as one rank's, after decompression."
    )
    trace_files: int = Field(20_000, ge=1, description="Files of one trace, including files in archives.")
    trace_file_spans: int = Field(
        100_000_000, ge=1, description="Rows of one trace file that is a database or a Parquet table."
    )
    trace_spans: int = Field(
        10_000_000,
        ge=1,
        description="Spans of one trace. A trace that is open takes about 400 bytes of the server's memory per span.",
    )
    open_spans: int = Field(
        20_000_000, ge=1, description="Spans of all open traces. More: the least recently used trace is closed."
    )
    import_memory_bytes: int | None = Field(
        None,
        ge=2**28,
        description="Memory of the process that reads a trace or job trace; by default half of the machine's memory.",
    )
    import_timeout_s: float = Field(3600.0, gt=0, description="Timeout for reading a trace or job trace, seconds.")
    decompression_ratio: float = Field(
        200.0,
        ge=1,
        description="Maximum ratio of decompressed to compressed size, checked after the first 16 MiB.",
    )


class ItemLimits(Section):
    """Items that users create. More: 413, until some are deleted. Per-user limits do not apply to operators."""

    views: int = Field(1_000, ge=1, description="Saved views of the site; likewise insights.")
    views_per_user: int = Field(100, ge=1, description="Saved views of one user; likewise insights.")
    comments: int = Field(50_000, ge=1, description="Comments of the site.")
    comments_per_user: int = Field(2_000, ge=1, description="Comments of one user.")
    comments_per_workload: int = Field(500, ge=1, description="Comments on one workload.")
    mutes: int = Field(2_000, ge=1, description="Active mutes.")
    tokens_per_user: int = Field(50, ge=1, description="Active API tokens of one user.")
    new_tokens_per_day: int = Field(200, ge=1, description="API tokens that one user may create per day.")
    sessions_per_user: int = Field(50, ge=1, description="Sessions of one user; the least recently used is ended.")


class RunLimits(Section):
    """What tracked runs may send. Data that is too large is refused (413, 422); of too many items the first are stored.

    Dropped items are counted and shown with the run.
    """

    piece_bytes: int = Field(
        16 * 2**20, ge=2**20, le=2**30, description="Size of one uploaded piece of a run's file. Larger: 413."
    )
    piece_frames: int = Field(
        2000, ge=100, le=10_000_000, description="Frames accepted per piece; the sender continues with the rest."
    )
    piece_samples: int = Field(
        100_000, ge=1000, le=100_000_000, description="Samples accepted per piece; the sender continues with the rest."
    )
    event_bytes: int = Field(
        8 * 2**20, ge=2**16, le=2**26, description="Size of one event, such as the environment of a run. Larger: 413."
    )
    frame_samples: int = Field(
        100_000,
        ge=100_000,
        le=2_000_000,
        description="Samples of one decompressed frame; trackers write at most 100,000. More: 413.",
    )
    files: int = Field(5000, ge=1, le=1_000_000, description="Files of one run; each process writes one. More: 413.")
    series: int = Field(
        2000,
        ge=1,
        le=100_000,
        description="Series (metric and unit) of one run; samples of further series are dropped.",
    )
    series_per_user: int = Field(
        500_000, ge=1, description="Series of all runs of one user; samples of further series are dropped."
    )
    names_per_user: int = Field(
        20_000, ge=1, description="Metric names in all runs of one user; samples of further metrics are dropped."
    )
    params: int = Field(
        1000, ge=1, le=100_000, description="Parameters of one run; likewise tags. Further ones are dropped."
    )
    param_chars: int = Field(
        6000, ge=100, le=1_000_000, description="Length of a parameter or tag value; longer values are truncated."
    )
    text_chars: int = Field(
        256 * 1024,
        ge=1000,
        le=2**26,
        description="Total length of a run's parameters, tags and command; the rest is dropped.",
    )
    marks: int = Field(
        10_000, ge=1, le=1_000_000, description="Epochs and phases of one run; further ones are dropped."
    )
    devices: int = Field(128, ge=1, le=1024, description="GPUs or MIG instances of one run; further ones are dropped.")
    span_days: float = Field(
        366.0,
        gt=0,
        le=3660,
        description="Days after a run was queued; later samples are dropped.",
    )
    clock_skew_s: float = Field(
        3600.0,
        ge=0,
        le=86_400,
        description="Seconds that a run's clock may be ahead of the server's; later samples are dropped.",
    )
    per_user: int = Field(20_000, ge=1, description="Stored runs of one user. More: 413, until some are deleted.")
    new_per_day: int = Field(2000, ge=1, description="Runs that one user may create per day. More: 429.")
    bytes_per_user: int = Field(
        200 * 2**30,
        ge=2**20,
        description="Total size of one user's runs as sent, decompressed (28 bytes per sample). Larger: 413.",
    )
    deleted_days: float = Field(
        30.0, ge=0, le=3660, description="Days for which a deleted run cannot be uploaded again (410)."
    )


class SourceLimits(Section):
    """What collectors accept from sources. The rest is dropped, counted and reported; known series and units are kept first."""

    scrape_bytes: int = Field(
        32 * 2**20, ge=2**16, description="Response size of an exporter. Larger: the scrape fails."
    )
    response_bytes: int = Field(
        512 * 2**20,
        ge=2**20,
        description="Response size of Slurm, Kubernetes or Prometheus, decompressed. Larger: the request fails.",
    )
    line_bytes: int = Field(64 * 2**10, ge=1024, description="Maximum line length of an exporter.")
    label_length: int = Field(
        1024,
        ge=64,
        description="Maximum length of a label value, and of the name of a node, user, project or workload.",
    )
    series_per_target: int = Field(50_000, ge=100, description="Series of one exporter; known ones come first.")
    series: int = Field(1_000_000, ge=1000, le=2_000_000, description="Series of a Prometheus; known ones come first.")
    nodes: int = Field(20_000, ge=1, description="Nodes of the site.")
    units_per_node: int = Field(1024, ge=1, description="GPUs and MIG instances of one node.")
    units: int = Field(200_000, ge=1, description="GPUs and MIG instances of the site.")
    new_units_per_round: int = Field(20_000, ge=1, description="New GPUs and MIG instances per round.")
    new_units_per_day: int = Field(200_000, ge=1, description="New GPUs and MIG instances per day.")
    holders_per_unit: int = Field(128, ge=1, description="Jobs or pods of one GPU, from labels of exporters.")
    new_holders_per_unit_per_day: int = Field(
        5_000, ge=1, description="New jobs or pods of one GPU, and jobs of one node, per day, from labels of exporters."
    )
    new_holders_per_day: int = Field(
        1_000_000,
        ge=1,
        description="New jobs or pods of all GPUs, and parts of jobs on all nodes, per day, from labels of exporters.",
    )
    partitions: int = Field(5_000, ge=1, description="Partitions and queues of one scheduler.")
    workloads: int = Field(
        200_000, ge=1, description="Active workloads of one scheduler, and workloads in one accounting response."
    )
    new_workloads_per_day: int = Field(2_000_000, ge=1, description="New workloads of one scheduler per day.")
    objects: int = Field(500_000, ge=1, description="Kubernetes objects of one kind.")


class LimitsSettings(Section):
    """Limits of requests, concurrency, uploads, user items, runs and sources."""

    http: HttpLimits = HttpLimits()
    work: WorkLimits = WorkLimits()
    uploads: UploadLimits = UploadLimits()
    items: ItemLimits = ItemLimits()
    runs: RunLimits = RunLimits()
    sources: SourceLimits = SourceLimits()
