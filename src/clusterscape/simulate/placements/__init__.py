"""Which nodes a job's GPUs come from, one file each."""
