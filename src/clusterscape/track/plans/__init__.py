"""Plans: lists of runs in workloads and experiments, read from radT's CSV or from TOML, run, resumed.

``collocation``: how runs share a GPU: time slicing, MPS, MIG.
``execute``: runs a plan.
``mig``: creates and removes MIG instances.
``plan``: the data of a plan, and its checks.
``radt_csv``: reads radT's CSV.
``toml_plan``: reads TOML.
"""
