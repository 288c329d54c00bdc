"""Parses the text of Slurm's commands into the documents of their JSON, for versions without ``--json`` (20.11 and before):
``scontrol --oneliner --details show jobs`` and ``show nodes``, and ``sacct --parsable2``. Times are Unix seconds
(``SLURM_TIME_FORMAT=%s``).

Users choose the names of their jobs: a name that looks like other fields must not be read as them.
"""

import re
from collections import Counter
from collections.abc import Mapping

from clusterscape.collect.slurm.values import expand_hostlist, read_int, read_mebibytes

_FIELD = re.compile(r"(?:^|\s)([A-Za-z][\w:./]*)=")
_JOB = re.compile(
    r"JobId=(?P<id>\d{1,18})(?P<array> (?:Array|Het|Pack)Job.*?)? JobName=(?P<name>.*) UserId=(?P<rest>[^\s(]*\(\d+\) GroupId=.*)"
)
"""Greedy: of all that look like the user's id, the last is Slurm's own, because the name of the job lies before it."""
_AFTER_SYSTEM_FIELDS = " Command="
"""From here on the fields have texts of the user: paths and the comment."""
_HELD = re.compile(r"Nodes=(\S+) CPU_IDs=\S* Mem=\S* GRES(?:_IDX)?=(\S*)")
_OWN_FIELD = re.compile(r" (Comment|AdminComment|TresPer(?:Job|Node|Socket|Task))=(.*?)(?= [A-Z][A-Za-z]+=| ?$)")
"""A value reaches to the next key: comments may have spaces."""
HISTORY_FIELDS = (
    "JobIDRaw", "JobID", "User", "Account", "WCKey", "Partition", "QOS", "State", "Submit", "Eligible", "Start",
    "End", "ElapsedRaw",
    "Suspended", "TimelimitRaw", "NNodes", "NodeList", "ReqTRES", "AllocTRES", "ExitCode", "DerivedExitCode",
    "Priority", "Reservation", "AdminComment",
    "JobName",
)  # fmt: skip
"""Columns of sacct that are asked for; the name of the job, which may contain the separator, is the last."""


def parse_fields_with_spaces(line: str) -> dict[str, str]:
    """Parse the ``KEY=VALUE`` fields of a line; a value reaches to the next key. Of equal keys the first counts."""
    fields: dict[str, str] = {}
    keys = list(_FIELD.finditer(line))
    ends = [*(key.start() for key in keys[1:]), len(line)]
    for key, end in zip(keys, ends, strict=False):
        fields.setdefault(key[1], line[key.end() : end].strip())
    return fields


def parse_nodes_text(text: str) -> dict[str, object]:
    """Parse ``scontrol --oneliner --details --all show nodes`` into the format of ``sinfo --json``."""
    entries: list[object] = []
    for line in text.splitlines():
        if not line.startswith("NodeName="):
            continue
        fields = parse_fields_with_spaces(line)
        state, *flags = re.split(r"[+]", fields.get("State", "").rstrip("*~#!%$@^-"))
        entries.append(
            {
                "name": fields.get("NodeName"),
                "hostname": fields.get("NodeHostName"),
                "address": fields.get("NodeAddr"),
                "state": state,
                "state_flags": [flag.rstrip("*~#!%$@^-") for flag in flags],
                "gres": fields.get("Gres"),
                "gres_used": fields.get("GresUsed"),
                "features": fields.get("AvailableFeatures") or fields.get("Features"),
                "active_features": fields.get("ActiveFeatures"),
                "partitions": [name for name in fields.get("Partitions", "").split(",") if name],
                "cpus": read_int(fields.get("CPUTot")),
                "real_memory": read_int(fields.get("RealMemory")),
                # "bad fan [root@2020-11-01T10:00:00]"
                "reason": re.sub(r"\s*\[[^\[\]]*@[^\[\]]*\]$", "", fields.get("Reason", "")),
            }
        )
    version = re.search(r" Version=(\d+\.\d+\.\d+)", text)
    return {"meta": {"Slurm": {"release": version[1] if version else None}}, "nodes": entries, "errors": []}


def parse_jobs_text(text: str, owners: str | None = None) -> dict[str, object]:
    """Parse ``scontrol --oneliner --details --all show jobs`` into the format of ``squeue --json``.

    ``owners``: the lines ``JOB USER`` of squeue. A line of another user, or a second line of a job,
    comes from the name of a job.
    """
    entries = [_parse_job(line) for line in text.splitlines() if line.startswith("JobId=")]
    if owners is not None:
        users = dict(line.split(maxsplit=1) for line in owners.splitlines() if len(line.split()) == 2)
        times = Counter(str(entry.get("job_id")) for entry in entries)
        entries = [
            entry if times[number] == 1 and users.get(number) == entry.get("user_name") else {}
            for entry in entries
            for number in [str(entry.get("job_id"))]
        ]
    return {"jobs": entries, "errors": []}


def _parse_job(line: str) -> dict[str, object]:
    system, separator, own = line.partition(_AFTER_SYSTEM_FIELDS)
    match = _JOB.match(system)
    if match is None:
        return {}  # counted as an entry without a job id
    fields = parse_fields_with_spaces("UserId=" + match["rest"])
    array = parse_fields_with_spaces(match["array"] or "")
    own_fields = dict(_last_fields(own)) if separator else {}
    task = array.get("ArrayTaskId", "")
    held = _HELD.findall(match["rest"])
    code, _, signal = fields.get("ExitCode", "").partition(":")
    derived, _, derived_signal = fields.get("DerivedExitCode", "").partition(":")
    entry: dict[str, object] = {
        "job_id": int(match["id"]),
        "job_state": fields.get("JobState"),
        "array_job_id": read_int(array.get("ArrayJobId")),
        "array_task_id": int(task) if task.isascii() and task.isdigit() and len(task) < 10 else None,
        "array_task_string": None if task.isdigit() else task,
        "het_job_id": read_int(array.get("HetJobId", array.get("PackJobId"))),
        "het_job_offset": read_int(array.get("HetJobOffset", array.get("PackJobOffset"))),
        "name": match["name"],
        "user_name": fields.get("UserId", "").partition("(")[0],
        "account": fields.get("Account"),
        "wckey": fields.get("WCKey"),
        "comment": own_fields.get("Comment"),
        "admin_comment": own_fields.get("AdminComment"),
        "partition": fields.get("Partition"),
        "qos": fields.get("QOS"),
        "priority": read_int(fields.get("Priority")),
        "batch_flag": fields.get("BatchFlag") != "0",
        "tres_req_str": fields.get("ReqTRES") or _requested_tres(fields),
        "tres_alloc_str": fields.get("AllocTRES", fields.get("TRES")) if held else None,
        "tres_per_job": own_fields.get("TresPerJob"),
        "tres_per_node": own_fields.get("TresPerNode", fields.get("Gres")),
        "tres_per_socket": own_fields.get("TresPerSocket"),
        "tres_per_task": own_fields.get("TresPerTask"),
        "node_count": read_int(fields.get("NumNodes", "").partition("-")[0]),
        "tasks": read_int(fields.get("NumTasks")),
        "time_limit": parse_minutes(fields.get("TimeLimit", "")),
        "submit_time": read_int(fields.get("SubmitTime")),
        "eligible_time": read_int(fields.get("EligibleTime")),
        "start_time": read_int(fields.get("StartTime")),
        "end_time": read_int(fields.get("EndTime")),
        "suspend_time": read_int(fields.get("SuspendTime")),
        "pre_sus_time": read_int(fields.get("SecsPreSuspend")),
        "state_reason": fields.get("Reason"),
        "exit_code": _exit_code(code, signal),
        "derived_exit_code": _exit_code(derived, derived_signal),
        "restart_cnt": read_int(fields.get("Restarts")),
        "features": fields.get("Features"),
        "resv_name": fields.get("Reservation"),
        "dependency": fields.get("Dependency"),
        "nodes": fields.get("NodeList"),
    }
    if any(gres not in ("", "(null)") for _, gres in held):
        entry |= _read_held(held)
    return entry


def _requested_tres(fields: Mapping[str, str]) -> str | None:
    """The only TRES of older versions: those allocated, once a job runs. An exclusive job then has all CPUs and their memory."""
    tres = fields.get("TRES")
    if tres is None or fields.get("OverSubscribe") != "NO" or fields.get("JobState") == "PENDING":
        return tres
    return ",".join(item for item in tres.split(",") if not item.startswith("mem="))


def _read_held(hosts: list[tuple[str, str]]) -> dict[str, object]:
    """Nodes in the order of ``gres_detail``. Nodes that hold the same are one group: ``Nodes=gpu[01-02]``."""
    names: list[str] = []
    details: list[str] = []
    for text, gres in hosts:
        try:
            group = expand_hostlist(text)
        except ValueError:
            return {}
        names += group
        details += ["" if gres == "(null)" else gres] * len(group)
    return {"nodes": ",".join(names), "gres_detail": details}


def _last_fields(text: str) -> list[tuple[str, str]]:
    """The comments, and the requests of the job, which Slurm prints after the user's paths: the last of each."""
    return [(match[1], match[2]) for match in _OWN_FIELD.finditer(text)]


def _exit_code(code: str, signal: str) -> dict[str, object] | None:
    number = read_int(code)
    return None if number is None else {"return_code": number, "signal": {"signal_id": read_int(signal) or 0}}


def parse_minutes(text: str) -> int | None:
    """Minutes of ``7-00:00:00``; None for UNLIMITED."""
    match = re.fullmatch(r"(?:(\d{1,6})-)?(\d{1,6}):(\d\d):(\d\d)", text, re.ASCII)
    if match is None:
        return None
    days, hours, minutes = int(match[1] or 0), int(match[2]), int(match[3])
    return (days * 24 + hours) * 60 + minutes


def parse_history_text(text: str) -> dict[str, object]:
    """Parse ``sacct --noheader --parsable2`` with HISTORY_FIELDS into the format of ``sacct --json``."""
    rows = (line.split("|", len(HISTORY_FIELDS) - 1) for line in text.splitlines())
    return {
        "jobs": [
            _parse_record(dict(zip(HISTORY_FIELDS, row, strict=True)))
            for row in rows
            if len(row) == len(HISTORY_FIELDS)
        ],
        "errors": [],
    }


def _parse_record(row: dict[str, str]) -> dict[str, object]:
    shown, _, _ = row["JobID"].partition(".")
    array_job, is_array, task = shown.partition("_")
    het_job, is_het, offset = shown.partition("+")
    suspended = _seconds(row["Suspended"])
    return {
        "job_id": read_int(row["JobIDRaw"]),
        "array": {"job_id": read_int(array_job), "task_id": read_int(task), "task": task.strip("[]")}
        if is_array
        else {},
        "het": {"job_id": read_int(het_job), "job_offset": read_int(offset)} if is_het else {},
        "name": row["JobName"],
        "user": row["User"],
        "account": row["Account"],
        "wckey": row["WCKey"],
        "partition": row["Partition"],
        "qos": row["QOS"],
        "priority": read_int(row["Priority"]),
        "state": {"current": row["State"].split(" ")[0], "reason": "None"},
        "time": {
            "submission": read_int(row["Submit"]),
            "eligible": read_int(row["Eligible"]),
            "start": read_int(row["Start"]),
            "end": read_int(row["End"]),
            "elapsed": read_int(row["ElapsedRaw"]),
            "suspended": suspended,
            "limit": read_int(row["TimelimitRaw"]),
        },
        "allocation_nodes": read_int(row["NNodes"]),
        "nodes": row["NodeList"],
        "tres": {"requested": parse_tres(row["ReqTRES"]), "allocated": parse_tres(row["AllocTRES"])},
        "exit_code": _exit_code(*row["ExitCode"].partition(":")[::2]),
        "derived_exit_code": _exit_code(*row["DerivedExitCode"].partition(":")[::2]),
        "reservation": {"name": row["Reservation"]},
        "comment": {"administrator": row["AdminComment"]},
    }


def parse_tres(text: str) -> list[object]:
    """``cpu=4,gres/gpu:a100=2`` as the list of JSON."""
    entries: list[object] = []
    for part in text.split(","):
        key, _, value = part.partition("=")
        kind, _, name = key.partition("/")
        count = read_mebibytes(value) if kind == "mem" else read_int(value)
        if count is not None:
            entries.append({"type": kind, "name": name, "count": count})
    return entries


def _seconds(text: str) -> int | None:
    """Seconds of ``1-02:03:04``."""
    match = re.fullmatch(r"(?:(\d{1,6})-)?(\d{1,6}):(\d\d):(\d\d)", text, re.ASCII)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
