"""The metrics of jobs and of whole nodes, as rows of the catalogue in ``metrics``: CPU, memory, disks, networks, file systems.

Both cgroup exporters (plazonic, treydock) use the same names. All sources report canonical units.
"""

from typing import NamedTuple


class HostMetric(NamedTuple):
    """One metric; numbers of a node are summed over its devices and processors."""

    name: str
    label: str
    unit: str
    text: str
    sources: tuple[str, ...]
    subject: str
    is_counter: bool = True


def _mode(*modes: str) -> tuple[str, ...]:
    return tuple(f'node_cpu_seconds_total{{mode="{mode}"}}' for mode in modes)


def _of_job(name: str, label: str, unit: str, text: str, source: str, *, is_counter: bool = False) -> HostMetric:
    return HostMetric(name, label, unit, text, (source,), "job", is_counter)


def _of_node(name: str, label: str, unit: str, text: str, *sources: str) -> HostMetric:
    return HostMetric(name, label, unit, text, sources, "node")


def _node_memory(name: str, label: str, text: str, source: str) -> HostMetric:
    return HostMetric(name, label, "bytes", text, (source,), "node", is_counter=False)


HOST_METRICS: tuple[HostMetric, ...] = (
    _of_job(
        "job_cpu_seconds",
        "CPU time",
        "seconds",
        "CPU time that the job used on the node, user and system.",
        "cgroup_cpu_total_seconds",
        is_counter=True,
    ),
    _of_job(
        "job_cpu_user_seconds",
        "CPU time, user",
        "seconds",
        "CPU time that the job spent in its own code.",
        "cgroup_cpu_user_seconds",
        is_counter=True,
    ),
    _of_job(
        "job_cpu_system_seconds",
        "CPU time, system",
        "seconds",
        "CPU time that the kernel spent for the job.",
        "cgroup_cpu_system_seconds",
        is_counter=True,
    ),
    _of_job("job_cores_count", "CPU cores", "count", "CPU cores that the job may use on the node.", "cgroup_cpus"),
    _of_job(
        "job_memory_rss_bytes",
        "Memory of processes",
        "bytes",
        "Anonymous memory of the job's processes.",
        "cgroup_memory_rss_bytes",
    ),
    _of_job(
        "job_memory_shared_bytes",
        "Shared memory",
        "bytes",
        "Shared memory and memory file systems (/dev/shm) of the job.",
        "cgroup_memory_shmem_bytes",
    ),
    _of_job(
        "job_memory_cache_bytes",
        "File cache",
        "bytes",
        "Page cache that is charged to the job; the kernel frees it on demand.",
        "cgroup_memory_cache_bytes",
    ),
    _of_job(
        "job_memory_charged_bytes",
        "Memory charged",
        "bytes",
        "All memory that is charged to the job, file cache included.",
        "cgroup_memory_used_bytes",
    ),
    _of_job(
        "job_memory_limit_bytes",
        "Memory limit",
        "bytes",
        "Memory that the job may use on the node.",
        "cgroup_memory_total_bytes",
    ),
    _of_job(
        "job_memory_failures_count",
        "Memory limit hits",
        "count",
        "How often the job reached its memory limit.",
        "cgroup_memory_fail_count",
        is_counter=True,
    ),
    _of_job(
        "job_memory_swap_bytes",
        "Memory and swap",
        "bytes",
        "Memory and swap that are charged to the job, as its exporter reports them.",
        "cgroup_memsw_used_bytes",
    ),
    _of_job(
        "job_memory_swap_failures_count",
        "Swap limit hits",
        "count",
        "How often the job reached its limit of memory and swap.",
        "cgroup_memsw_fail_count",
        is_counter=True,
    ),
    _node_memory("node_memory_total_bytes", "Node memory", "Memory of the node.", "node_memory_MemTotal_bytes"),
    _node_memory(
        "node_memory_available_bytes",
        "Node memory available",
        "Memory of the node that programs can still get without swapping.",
        "node_memory_MemAvailable_bytes",
    ),
    _node_memory("node_swap_total_bytes", "Node swap", "Swap space of the node.", "node_memory_SwapTotal_bytes"),
    _node_memory(
        "node_swap_free_bytes", "Node swap free", "Free swap space of the node.", "node_memory_SwapFree_bytes"
    ),
    _of_node(
        "node_cpu_busy_seconds",
        "Node CPU busy",
        "seconds",
        "CPU time of the node's processors that was used.",
        *_mode("user", "system", "nice", "irq", "softirq", "steal"),
    ),
    _of_node(
        "node_cpu_idle_seconds",
        "Node CPU idle",
        "seconds",
        "CPU time of the node's processors that was not used, or waited for disks.",
        *_mode("idle", "iowait"),
    ),
    _of_node("node_disk_read_bytes", "Disk read", "bytes", "Read from local disks.", "node_disk_read_bytes_total"),
    _of_node(
        "node_disk_written_bytes", "Disk written", "bytes", "Written to local disks.", "node_disk_written_bytes_total"
    ),
    _of_node(
        "node_network_received_bytes",
        "Network received",
        "bytes",
        "Received over Ethernet and IP over InfiniBand.",
        "node_network_receive_bytes_total",
    ),
    _of_node(
        "node_network_sent_bytes",
        "Network sent",
        "bytes",
        "Sent over Ethernet and IP over InfiniBand.",
        "node_network_transmit_bytes_total",
    ),
    _of_node(
        "node_network_errors_count",
        "Network errors",
        "count",
        "Frames that were received with an error.",
        "node_network_receive_errs_total",
    ),
    _of_node(
        "node_infiniband_received_bytes",
        "InfiniBand received",
        "bytes",
        "Received by all InfiniBand and RoCE ports.",
        "node_infiniband_port_data_received_bytes_total",
    ),
    _of_node(
        "node_infiniband_sent_bytes",
        "InfiniBand sent",
        "bytes",
        "Sent by all InfiniBand and RoCE ports.",
        "node_infiniband_port_data_transmitted_bytes_total",
    ),
    _of_node(
        "node_infiniband_link_down_count",
        "InfiniBand link losses",
        "count",
        "How often a port lost its link.",
        "node_infiniband_link_downed_total",
    ),
    _of_node(
        "node_infiniband_symbol_errors_count",
        "InfiniBand symbol errors",
        "count",
        "Symbol errors on a link.",
        "node_infiniband_symbol_error_total",
    ),
    _of_node(
        "node_infiniband_wait_count",
        "InfiniBand waits",
        "count",
        "Ticks in which a port had data to send but no credit.",
        "node_infiniband_port_transmit_wait_total",
    ),
    _of_node(
        "node_roce_marked_packets_count",
        "RoCE packets marked",
        "count",
        "Packets received with a mark of congestion (ECN).",
        "node_infiniband_np_ecn_marked_roce_packets_received_total",
    ),
    _of_node(
        "node_roce_reordered_packets_count",
        "RoCE packets out of order",
        "count",
        "Packets received out of order.",
        "node_infiniband_out_of_sequence_packets_received_total",
    ),
    _of_node("node_nfs_requests_count", "NFS requests", "count", "Requests to NFS servers.", "node_nfs_requests_total"),
    _of_node(
        "node_gpfs_read_bytes", "GPFS read", "bytes", "Read from GPFS.", "gpfs_bytes_read", "gpfs_read_bytes_total"
    ),
    _of_node(
        "node_gpfs_written_bytes",
        "GPFS written",
        "bytes",
        "Written to GPFS.",
        "gpfs_bytes_write",
        "gpfs_write_bytes_total",
    ),
)
