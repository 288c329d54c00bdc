"""What Slurm says when it fails, and what ClusterScape makes of it."""

import base64

import orjson
import pytest

from clusterscape.collect.slurm.faults import explain, read_answer, version_of
from clusterscape.collect.slurm.rest import read_token_expiry
from clusterscape.errors import SourceError


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "squeue: error: If munged is up, restart with --num-threads=10\n"
            'squeue: error: Munge encode failed: Failed to access "/run/munge/sock": No such file or directory\n',
            "munged",
            "munged",
        ),
        (
            "slurm_load_partitions error: Unable to contact slurm controller (connect failure)\n",
            "Unable to contact slurm controller",
            "slurmctld",
        ),
        (
            "sacct: error: failed to open persistent connection to host:127.0.0.1:6819: Connection refused\n"
            "sacct: error: Problem talking to the database: Connection refused\n",
            "persistent connection",
            "slurmdbd",
        ),
        ("Slurm accounting storage is disabled\n", "accounting storage is disabled", "history_days = 0"),
        (
            "scontrol: unrecognized option '--json'\nTry \"scontrol --help\" for more information",
            "unrecognized option",
            "21.08",
        ),
        (
            "squeue: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n"
            "squeue: fatal: Could not establish a configuration source",
            "",
            "collect.slurm.conf",
        ),
        ("sacct: error: Access/permission denied", "Access/permission denied", "adminlevel=operator"),
        ("Something never seen", "Something never seen", "by hand"),
        ("", "it said nothing", "by hand"),
    ],
)
def test_failure_has_message_and_hint_when_slurm_complains(text: str, message: str, hint: str) -> None:
    error = explain("squeue --json", text)
    assert error.message.startswith("squeue --json: ")
    assert message in error.message
    assert error.hint is not None
    assert hint in error.hint


def answer(**fields: object) -> bytes:
    return orjson.dumps(fields)


def test_empty_list_with_errors_is_a_failure_when_slurm_calls_it_success() -> None:
    body = answer(
        errors=[{"description": "Failed while looking for jobs", "error_number": -1, "error": "Unspecified error"}],
        jobs=[],
    )
    with pytest.raises(SourceError) as caught:
        read_answer(body, asked="squeue --json", key="jobs")
    assert "Failed while looking for jobs: Unspecified error" in caught.value.message
    assert "slurmctld" in (caught.value.hint or "")


def test_standard_error_gives_the_hint_when_the_answer_says_little() -> None:
    body = answer(errors=[{"error": "Unspecified error", "errno": -1}], nodes=[])
    with pytest.raises(SourceError) as caught:
        read_answer(body, asked="sinfo --json", key="nodes", aside="sinfo: error: Munge encode failed: no socket\n")
    assert "munged" in (caught.value.hint or "")


def test_empty_list_is_an_answer_when_nothing_was_found() -> None:
    assert read_answer(answer(errors=[], jobs=[]), asked="x", key="jobs")["jobs"] == []
    nothing = answer(errors=[{"error": "Nothing found with query", "error_number": 9003}], jobs=[])
    assert read_answer(nothing, asked="x", key="jobs") == {"errors": [], "jobs": []}


def test_answer_is_read_when_slurm_prints_what_json_forbids() -> None:
    body = b'{"errors": [], "jobs": [{"job_id": 1, "billable_tres": NaN, "name": "caf\xe9"}]}'
    document = read_answer(body, asked="x", key="jobs")
    assert document["jobs"] is not None


@pytest.mark.parametrize("body", [b"", b"Internal error", b"[]", b'{"jobs": 5}', b'{"nodes": []}', b"{"])
def test_answer_is_refused_when_it_is_not_what_was_asked(body: bytes) -> None:
    with pytest.raises(SourceError):
        read_answer(body, asked="x", key="jobs")


def test_version_is_found_when_spelled_either_way() -> None:
    assert version_of({"meta": {"Slurm": {"release": "22.05.8"}}}) == "22.05.8"
    assert version_of({"meta": {"slurm": {"release": "25.11.0"}}}) == "25.11.0"
    assert version_of({}) is None


def token(claims: object) -> str:
    payload = base64.urlsafe_b64encode(orjson.dumps(claims)).decode().rstrip("=")
    return f"head.{payload}.signature"


def test_token_tells_its_end_when_it_is_a_token() -> None:
    assert read_token_expiry(token({"exp": 1_700_000_000, "sun": "alice"})) == 1_700_000_000
    assert read_token_expiry(token({"sun": "alice"})) is None
    assert read_token_expiry(token([1])) is None
    for junk in ("", "a.b", "a.!!!.c", "a.é.c"):
        assert read_token_expiry(junk) is None
