"""The words of traces for how a job ended."""

from clusterscape.model.jobs import JobStatus

SWF = {
    "1": JobStatus.COMPLETED,
    "0": JobStatus.FAILED,
    "5": JobStatus.CANCELLED,
    "3": JobStatus.COMPLETED,  # the last part of a job that was interrupted
    "4": JobStatus.FAILED,
    "2": JobStatus.UNKNOWN,  # a part that was continued
    "-1": JobStatus.UNKNOWN,
}
SLURM = {
    "completed": JobStatus.COMPLETED,
    "failed": JobStatus.FAILED,
    "node_fail": JobStatus.FAILED,
    "boot_fail": JobStatus.FAILED,
    "out_of_memory": JobStatus.FAILED,
    "launch_failed": JobStatus.FAILED,
    "reconfig_fail": JobStatus.FAILED,
    "cancelled": JobStatus.CANCELLED,
    "preempted": JobStatus.CANCELLED,
    "revoked": JobStatus.CANCELLED,
    "requeued": JobStatus.CANCELLED,  # one execution of a job that went on in another record
    "resizing": JobStatus.UNKNOWN,
    "timeout": JobStatus.TIMEOUT,
    "deadline": JobStatus.TIMEOUT,
}
SLURM_ACTIVE = ("pending", "running", "suspended", "completing", "configuring", "stopped")
PHILLY = {"pass": JobStatus.COMPLETED, "killed": JobStatus.CANCELLED, "failed": JobStatus.FAILED}
PODS = {
    "succeeded": JobStatus.COMPLETED,
    "failed": JobStatus.FAILED,
    "running": JobStatus.UNKNOWN,
    "pending": JobStatus.UNKNOWN,
}
