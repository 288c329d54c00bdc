"""Plans: lists of runs in workloads and experiments, read from radT's CSV or from TOML, run, resumed."""
