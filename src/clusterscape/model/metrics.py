"""The metric catalogue: every canonical metric with its unit, its kind and the names that sources use for it.

A source's value is converted by ``value * scale``. Canonical units are SI: ratio 0–1, watts, joules, bytes, hertz,
degrees Celsius, seconds. To add a metric, add one entry here; those of
jobs and whole nodes are in ``host_metrics``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from clusterscape.model.host_metrics import HOST_METRICS
from clusterscape.model.period_metrics import PERIOD_METRICS

PERCENT = 0.01
MEBIBYTE = 2.0**20
MEGAHERTZ = 1e6
MILLIJOULE = 1e-3
MILLIWATT = 1e-3
NANOSECOND = 1e-9


class MetricKind(StrEnum):
    """Whether the value itself or only its increase is meaningful."""

    GAUGE = "gauge"
    COUNTER = "counter"


class MetricSubject(StrEnum):
    """What a metric is measured of, which decides the id that its samples are stored under."""

    UNIT = "unit"  # a GPU or MIG instance
    JOB = "job"  # the part of a job that runs on one node: `job_unit_id`
    NODE = "node"  # a whole node, with all that runs there: the node's name
    SOURCE = "source"
    PERIOD = "period"  # the ended jobs of a user or project over days; never sampled


class MetricUnit(StrEnum):
    """Canonical units; the client formats by these."""

    RATIO = "ratio"
    WATTS = "watts"
    JOULES = "joules"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes_per_second"
    HERTZ = "hertz"
    CELSIUS = "celsius"
    SECONDS = "seconds"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class Metric:
    """One canonical metric.

    ``lower``/``upper`` are physical limits (values outside are dropped as out of range); ``aliases`` maps a source's name to
    the factor that converts its values; a name with labels in braces means only the series that have them. ``summary`` metrics
    are offered first. ``is_own``: computed by ClusterScape; samples of it from sources are rejected. ``is_status``: a constant or
    a state code of the GPU, which the page does not offer for coloring and filtering.
    """

    name: str
    label: str
    unit: MetricUnit
    help: str
    aliases: Mapping[str, float]
    kind: MetricKind = MetricKind.GAUGE
    lower: float = 0.0
    upper: float | None = None
    summary: bool = False
    is_own: bool = False
    is_status: bool = False
    subject: MetricSubject = MetricSubject.UNIT

    @property
    def is_offered(self) -> bool:
        """Whether the page colors, filters and sorts units by it."""
        return (
            self.kind is MetricKind.GAUGE and self.subject is MetricSubject.UNIT and not (self.is_own or self.is_status)
        )


@dataclass(frozen=True, slots=True)
class Alias:
    """The canonical metric of a source's metric name."""

    metric: Metric
    scale: float


def _ratio(name: str, label: str, text: str, percent: str = "", ratio: str = "", *, summary: bool = False) -> Metric:
    """A 0–1 metric; ``percent`` and ``ratio`` list (space-separated) source names in % and in 0–1."""
    aliases = dict.fromkeys(percent.split(), PERCENT) | dict.fromkeys(ratio.split(), 1.0)
    # A sampled percentage may read slightly over 100; more than 2 % over is nonsense.
    return Metric(name, label, MetricUnit.RATIO, text, MappingProxyType(aliases), upper=1.02, summary=summary)


def _gauge(
    name: str,
    label: str,
    unit: MetricUnit,
    text: str,
    sources: str,
    *,
    scale: float = 1.0,
    lower: float = 0.0,
    upper: float | None = None,
    summary: bool = False,
    is_status: bool = False,
    also: Mapping[str, float] = MappingProxyType({}),
) -> Metric:
    """``also``: source names whose factor differs from ``scale``."""
    aliases = MappingProxyType(dict.fromkeys(sources.split(), scale) | dict(also))
    return Metric(name, label, unit, text, aliases, lower=lower, upper=upper, summary=summary, is_status=is_status)


def _counter(
    name: str,
    label: str,
    unit: MetricUnit,
    text: str,
    sources: str,
    *,
    scale: float = 1.0,
    summary: bool = False,
    also: Mapping[str, float] = MappingProxyType({}),
) -> Metric:
    aliases = MappingProxyType(dict.fromkeys(sources.split(), scale) | dict(also))
    return Metric(name, label, unit, text, aliases, kind=MetricKind.COUNTER, summary=summary)


def _computed(
    name: str,
    label: str,
    text: str,
    unit: MetricUnit = MetricUnit.COUNT,
    subject: MetricSubject = MetricSubject.UNIT,
) -> Metric:
    """A metric from 0 to 1 that ClusterScape computes."""
    return Metric(name, label, unit, text, MappingProxyType({}), upper=1.0, is_own=True, subject=subject)


JOB_NUMBER = "gpu_job_number"

CATALOGUE: tuple[Metric, ...] = (
    _ratio(
        "gpu_util_ratio",
        "GPU utilization",
        "Share of the sample period in which at least one kernel ran.",
        percent="DCGM_FI_DEV_GPU_UTIL dcgm_gpu_utilization nvml_gpu_util nvidia_gpu_duty_cycle",
        summary=True,
    ),
    _gauge(
        "power_watts",
        "Power",
        MetricUnit.WATTS,
        "Power draw of the whole GPU.",
        "DCGM_FI_DEV_POWER_USAGE dcgm_power_usage DCGM_FI_DEV_POWER_USAGE_INSTANT nvml_power_watts",
        upper=5_000,
        summary=True,
        also={"nvidia_gpu_power_usage_milliwatts": MILLIWATT},
    ),
    _gauge(
        "memory_used_bytes",
        "Memory used",
        MetricUnit.BYTES,
        "Framebuffer memory in use.",
        "DCGM_FI_DEV_FB_USED dcgm_fb_used nvml_memory_used_mib",
        scale=MEBIBYTE,
        summary=True,
        also={"nvidia_gpu_memory_used_bytes": 1.0},
    ),
    _gauge(
        "memory_free_bytes",
        "Memory free",
        MetricUnit.BYTES,
        "Framebuffer memory free.",
        "DCGM_FI_DEV_FB_FREE dcgm_fb_free nvml_memory_free_mib",
        scale=MEBIBYTE,
    ),
    _gauge(
        "memory_reserved_bytes",
        "Memory reserved",
        MetricUnit.BYTES,
        "Framebuffer memory reserved by the driver.",
        "DCGM_FI_DEV_FB_RESERVED nvml_memory_reserved_mib",
        scale=MEBIBYTE,
        is_status=True,
    ),
    _gauge(
        "memory_total_bytes",
        "Memory size",
        MetricUnit.BYTES,
        "Framebuffer memory of the GPU.",
        "DCGM_FI_DEV_FB_TOTAL nvml_memory_total_mib",
        scale=MEBIBYTE,
        is_status=True,
        also={"nvidia_gpu_memory_total_bytes": 1.0},
    ),
    _ratio(
        "sm_active_ratio",
        "SM active",
        "Share of cycles in which a multiprocessor had at least one warp.",
        ratio="DCGM_FI_PROF_SM_ACTIVE dcgm_fi_prof_sm_active nvml_sm_active nvidia_gpu_sm_util_percent",
        summary=True,
    ),
    _ratio(
        "sm_occupancy_ratio",
        "SM occupancy",
        "Resident warps relative to the most that fit.",
        ratio="DCGM_FI_PROF_SM_OCCUPANCY dcgm_fi_prof_sm_occupancy nvml_sm_occupancy nvidia_gpu_sm_occupancy_percent",
    ),
    _ratio(
        "tensor_active_ratio",
        "Tensor active",
        "Share of cycles in which the tensor pipe was busy.",
        ratio="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE dcgm_fi_prof_pipe_tensor_active nvml_tensor_active "
        "nvidia_gpu_any_tensor_util_percent",
        summary=True,
    ),
    _ratio(
        "dram_active_ratio",
        "DRAM active",
        "Share of cycles in which the memory interface moved data.",
        ratio="DCGM_FI_PROF_DRAM_ACTIVE dcgm_fi_prof_dram_active nvml_dram_active nvidia_gpu_dram_bw_util_percent",
        summary=True,
    ),
    _ratio(
        "graphics_active_ratio",
        "Engine active",
        "Share of time in which the graphics or compute engine was busy.",
        ratio="DCGM_FI_PROF_GR_ENGINE_ACTIVE dcgm_fi_prof_gr_engine_active nvml_graphics_active "
        "nvidia_gpu_graphics_util_percent",
    ),
    _ratio(
        "fp64_active_ratio",
        "FP64 active",
        "Share of cycles in which the FP64 pipe was busy.",
        ratio="DCGM_FI_PROF_PIPE_FP64_ACTIVE nvidia_gpu_fp64_util_percent",
    ),
    _ratio(
        "fp32_active_ratio",
        "FP32 active",
        "Share of cycles in which the FP32 pipe was busy.",
        ratio="DCGM_FI_PROF_PIPE_FP32_ACTIVE nvidia_gpu_fp32_util_percent",
    ),
    _ratio(
        "fp16_active_ratio",
        "FP16 active",
        "Share of cycles in which the FP16 pipe was busy.",
        ratio="DCGM_FI_PROF_PIPE_FP16_ACTIVE nvidia_gpu_fp16_util_percent",
    ),
    _ratio(
        "memory_copy_util_ratio",
        "Memory copy",
        "Share of the sample period in which device memory was read or written.",
        percent="DCGM_FI_DEV_MEM_COPY_UTIL dcgm_mem_copy_utilization nvml_memory_util",
    ),
    _ratio(
        "encoder_util_ratio",
        "Encoder",
        "Video encoder utilization.",
        percent="DCGM_FI_DEV_ENC_UTIL dcgm_enc_utilization nvml_encoder_util",
    ),
    _ratio(
        "decoder_util_ratio",
        "Decoder",
        "Video decoder utilization.",
        percent="DCGM_FI_DEV_DEC_UTIL dcgm_dec_utilization nvml_decoder_util",
    ),
    _gauge(
        "gpu_temperature_celsius",
        "GPU temperature",
        MetricUnit.CELSIUS,
        "Temperature of the GPU die.",
        "DCGM_FI_DEV_GPU_TEMP dcgm_gpu_temp nvml_gpu_temperature nvidia_gpu_temperature_celsius",
        lower=-50,
        upper=200,
        summary=True,
    ),
    _gauge(
        "memory_temperature_celsius",
        "Memory temperature",
        MetricUnit.CELSIUS,
        "Temperature of the device memory.",
        "DCGM_FI_DEV_MEMORY_TEMP dcgm_memory_temp nvml_memory_temperature",
        lower=-50,
        upper=200,
    ),
    _gauge(
        "sm_clock_hertz",
        "SM clock",
        MetricUnit.HERTZ,
        "Clock of the multiprocessors.",
        "DCGM_FI_DEV_SM_CLOCK dcgm_sm_clock nvml_sm_clock_mhz",
        scale=MEGAHERTZ,
        summary=True,
    ),
    _gauge(
        "memory_clock_hertz",
        "Memory clock",
        MetricUnit.HERTZ,
        "Clock of the device memory.",
        "DCGM_FI_DEV_MEM_CLOCK dcgm_memory_clock nvml_memory_clock_mhz",
        scale=MEGAHERTZ,
    ),
    _counter(
        "energy_joules",
        "Energy",
        MetricUnit.JOULES,
        "Energy used since the driver was loaded.",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION dcgm_total_energy_consumption nvml_energy_mj",
        scale=MILLIJOULE,
    ),
    _gauge(
        "power_limit_watts",
        "Power limit",
        MetricUnit.WATTS,
        "Power limit that the driver enforces.",
        "DCGM_FI_DEV_POWER_MGMT_LIMIT DCGM_FI_DEV_ENFORCED_POWER_LIMIT nvml_power_limit_watts",
        upper=5_000,
        is_status=True,
    ),
    _gauge(
        "pcie_tx_bytes_per_second",
        "PCIe sent",
        MetricUnit.BYTES_PER_SECOND,
        "Data sent over PCIe, headers included.",
        "DCGM_FI_PROF_PCIE_TX_BYTES dcgm_fi_prof_pcie_tx_bytes nvml_pcie_tx",
        summary=True,
    ),
    _gauge(
        "pcie_rx_bytes_per_second",
        "PCIe received",
        MetricUnit.BYTES_PER_SECOND,
        "Data received over PCIe, headers included.",
        "DCGM_FI_PROF_PCIE_RX_BYTES dcgm_fi_prof_pcie_rx_bytes nvml_pcie_rx",
    ),
    _gauge(
        "nvlink_tx_bytes_per_second",
        "NVLink sent",
        MetricUnit.BYTES_PER_SECOND,
        "Data sent over NVLink, headers included.",
        "DCGM_FI_PROF_NVLINK_TX_BYTES nvml_nvlink_tx",
        summary=True,
    ),
    _gauge(
        "nvlink_rx_bytes_per_second",
        "NVLink received",
        MetricUnit.BYTES_PER_SECOND,
        "Data received over NVLink, headers included.",
        "DCGM_FI_PROF_NVLINK_RX_BYTES nvml_nvlink_rx",
    ),
    _counter(
        "nvlink_bandwidth_count",
        "NVLink counter",
        MetricUnit.COUNT,
        "NVLink traffic counter over all lanes; its step differs between GPU generations.",
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL dcgm_nvlink_bandwidth_total",
    ),
    _counter(
        "nvlink_lane0_count",
        "NVLink lane 0",
        MetricUnit.COUNT,
        "NVLink traffic counter of lane 0.",
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_L0",
    ),
    _gauge(
        "xid_error_code",
        "Last XID",
        MetricUnit.COUNT,
        "Code of the last XID error; 0 where there was none.",
        "DCGM_FI_DEV_XID_ERRORS dcgm_xid_errors",
    ),
    _counter(
        "xid_errors_count",
        "XID errors",
        MetricUnit.COUNT,
        "XID errors during the exporter's last window.",
        "DCGM_EXP_XID_ERRORS_COUNT",
    ),
    _counter(
        "clock_events_count",
        "Clock events",
        MetricUnit.COUNT,
        "Clock changes with a reason during the exporter's last window.",
        "DCGM_EXP_CLOCK_EVENTS_COUNT",
    ),
    _gauge(
        "health_status",
        "Health",
        MetricUnit.COUNT,
        "DCGM's health verdict: 0 pass, 10 warn, 20 fail.",
        "DCGM_EXP_GPU_HEALTH_STATUS",
        is_status=True,
    ),
    _gauge(
        "p2p_status", "P2P", MetricUnit.COUNT, "State of NVLink peer-to-peer.", "DCGM_EXP_P2P_STATUS", is_status=True
    ),
    _counter(
        "pcie_replay_count",
        "PCIe retries",
        MetricUnit.COUNT,
        "PCIe retries.",
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER dcgm_pcie_replay_counter nvml_pcie_replay",
    ),
    *(
        _counter(
            f"{reason}_throttle_seconds",
            f"Throttled: {label}",
            MetricUnit.SECONDS,
            f"Time throttled because of {label}.",
            f"DCGM_FI_DEV_{field}_VIOLATION dcgm_{field.lower()}_violation",
            scale=NANOSECOND,
        )
        for reason, label, field in (
            ("power", "power", "POWER"),
            ("thermal", "heat", "THERMAL"),
            ("sync_boost", "sync boost", "SYNC_BOOST"),
            ("board_limit", "board limit", "BOARD_LIMIT"),
            ("low_util", "low utilization", "LOW_UTIL"),
            ("reliability", "reliability", "RELIABILITY"),
        )
    ),
    *(
        _counter(name, label, MetricUnit.COUNT, text, sources)
        for name, label, text, sources in (
            (
                "ecc_sbe_volatile_count",
                "ECC single-bit, volatile",
                "Single-bit ECC errors since the driver was loaded.",
                "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL dcgm_ecc_sbe_volatile_total "
                'nvidia_gpu_ecc_errors{error="corrected",counter="volatile"}',
            ),
            (
                "ecc_dbe_volatile_count",
                "ECC double-bit, volatile",
                "Double-bit ECC errors since the driver was loaded.",
                "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL dcgm_ecc_dbe_volatile_total "
                'nvidia_gpu_ecc_errors{error="uncorrected",counter="volatile"}',
            ),
            (
                "ecc_sbe_aggregate_count",
                "ECC single-bit, all time",
                "Single-bit ECC errors over the card's life.",
                "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL dcgm_ecc_sbe_aggregate_total "
                'nvidia_gpu_ecc_errors{error="corrected",counter="aggregate"}',
            ),
            (
                "ecc_dbe_aggregate_count",
                "ECC double-bit, all time",
                "Double-bit ECC errors over the card's life.",
                "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL dcgm_ecc_dbe_aggregate_total "
                'nvidia_gpu_ecc_errors{error="uncorrected",counter="aggregate"}',
            ),
            (
                "retired_pages_sbe_count",
                "Pages retired, single-bit",
                "Memory pages retired for single-bit errors.",
                "DCGM_FI_DEV_RETIRED_SBE dcgm_retired_pages_sbe",
            ),
            (
                "retired_pages_dbe_count",
                "Pages retired, double-bit",
                "Memory pages retired for double-bit errors.",
                "DCGM_FI_DEV_RETIRED_DBE dcgm_retired_pages_dbe",
            ),
            (
                "retired_pages_pending_count",
                "Pages to retire",
                "Memory pages that wait for retirement.",
                "DCGM_FI_DEV_RETIRED_PENDING dcgm_retired_pages_pending",
            ),
            (
                "remapped_rows_uncorrectable_count",
                "Rows remapped, uncorrectable",
                "Memory rows remapped for uncorrectable errors.",
                "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
            ),
            (
                "remapped_rows_correctable_count",
                "Rows remapped, correctable",
                "Memory rows remapped for correctable errors.",
                "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
            ),
            (
                "nvlink_flit_crc_errors_count",
                "NVLink flit CRC",
                "NVLink flow-control CRC errors.",
                "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL dcgm_nvlink_flit_crc_error_count_total",
            ),
            (
                "nvlink_data_crc_errors_count",
                "NVLink data CRC",
                "NVLink data CRC errors.",
                "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL dcgm_nvlink_data_crc_error_count_total",
            ),
            (
                "nvlink_replay_errors_count",
                "NVLink retries",
                "NVLink retries.",
                "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL dcgm_nvlink_replay_error_count_total",
            ),
            (
                "nvlink_recovery_errors_count",
                "NVLink recoveries",
                "NVLink recovery errors.",
                "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL dcgm_nvlink_recovery_error_count_total",
            ),
        )
    ),
    _gauge(
        "row_remap_failure",
        "Row remap failed",
        MetricUnit.COUNT,
        "1 where remapping of memory rows has failed.",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        is_status=True,
    ),
    _gauge(
        "vgpu_license_status",
        "vGPU licence",
        MetricUnit.COUNT,
        "State of the vGPU licence.",
        "DCGM_FI_DEV_VGPU_LICENSE_STATUS",
        is_status=True,
    ),
    _computed(
        "gpu_missing",
        "GPU missing",
        "1 while the node's exporter responds but does not report this GPU.",
    ),
    _computed(
        "exporter_silent",
        "Exporter silent",
        "Of a node that is not down: 1 while none of its exporters responds.",
        subject=MetricSubject.NODE,
    ),
    _computed(
        "node_down",
        "Node down",
        "Of a node: 1 while the scheduler reports it as down.",
        subject=MetricSubject.NODE,
    ),
    _computed(
        "node_drained",
        "Node drained",
        "Of a node: 1 while the scheduler reports it as draining or drained.",
        subject=MetricSubject.NODE,
    ),
    Metric(
        "xid_hardware_code",
        "Last hardware XID",
        MetricUnit.COUNT,
        "Code of the last XID error if it requires the operator (reset, reboot, repair); 0 if it is of a program or harmless.",
        MappingProxyType({}),
        is_own=True,
        is_status=True,
    ),
    _computed(
        "source_failing_ratio",
        "Source failing",
        "Of a source, such as slurm: share of its parts (nodes, queue, accounting …) that fail.",
        MetricUnit.RATIO,
        MetricSubject.SOURCE,
    ),
    _gauge(
        JOB_NUMBER,
        "Job number",
        MetricUnit.COUNT,
        "Number of the job that holds the GPU, as the node's prolog notes it; 0 where none does.",
        "nvidia_gpu_jobId",
        is_status=True,
    ),
    *(
        Metric(
            row.name,
            row.label,
            MetricUnit(row.unit),
            row.text,
            MappingProxyType(dict.fromkeys(row.sources, 1.0)),
            kind=MetricKind.COUNTER if row.is_counter else MetricKind.GAUGE,
            subject=MetricSubject(row.subject),
        )
        for row in HOST_METRICS
    ),
    *(
        Metric(
            period.name,
            period.label,
            MetricUnit(period.unit),
            period.text,
            MappingProxyType({}),
            kind=MetricKind.COUNTER if period.is_sum else MetricKind.GAUGE,
            is_own=True,
            subject=MetricSubject.PERIOD,
        )
        for period in PERIOD_METRICS
    ),
)

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in CATALOGUE})

UNIT_METRICS: tuple[Metric, ...] = tuple(metric for metric in CATALOGUE if metric.subject is MetricSubject.UNIT)
"""The metrics of GPUs and MIG instances."""

JUDGED_METRICS: Mapping[str, Metric] = MappingProxyType(
    {metric.name: metric for metric in CATALOGUE if metric.subject is MetricSubject.UNIT or metric.is_own}
)
"""The metrics that rules can judge, by name."""

ALIASES: Mapping[str, Alias] = MappingProxyType(
    {source: Alias(metric, scale) for metric in CATALOGUE for source, scale in metric.aliases.items()}
    | {metric.name: Alias(metric, 1.0) for metric in CATALOGUE if not metric.is_own}
)
"""Every name that a source may use for a metric, with labels where they decide, including the canonical names."""

SOURCE_NAMES: frozenset[str] = frozenset(alias.partition("{")[0] for alias in ALIASES)
"""The same without labels: all names of series that are read."""
