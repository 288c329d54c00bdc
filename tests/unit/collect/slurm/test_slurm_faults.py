"""Error responses of Slurm, and the errors that ClusterScape reports."""

import base64

import orjson
import pytest

from clusterscape.collect.slurm.faults import explain, parse_response, version_of
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
            "20.11",
        ),
        (
            "squeue: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n"
            "squeue: fatal: Could not establish a configuration source",
            "",
            "collect.slurm.conf",
        ),
        ("sacct: error: Access/permission denied", "Access/permission denied", "adminlevel=operator"),
        ("Something never seen", "Something never seen", "manually"),
        ("", "failed without an error message", "manually"),
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
        parse_response(body, request="squeue --json", key="jobs")
    assert "Failed while looking for jobs: Unspecified error" in caught.value.message
    assert "slurmctld" in (caught.value.hint or "")


def test_hint_comes_from_standard_error_when_the_response_has_no_detail() -> None:
    body = answer(errors=[{"error": "Unspecified error", "errno": -1}], nodes=[])
    with pytest.raises(SourceError) as caught:
        parse_response(
            body, request="sinfo --json", key="nodes", stderr="sinfo: error: Munge encode failed: no socket\n"
        )
    assert "munged" in (caught.value.hint or "")


def test_empty_list_is_accepted_when_nothing_was_found() -> None:
    assert parse_response(answer(errors=[], jobs=[]), request="x", key="jobs")["jobs"] == []
    nothing = answer(errors=[{"error": "Nothing found with query", "error_number": 9003}], jobs=[])
    assert parse_response(nothing, request="x", key="jobs") == {"errors": [], "jobs": []}


def test_response_is_read_when_slurm_prints_invalid_json() -> None:
    body = b'{"errors": [], "jobs": [{"job_id": 1, "billable_tres": NaN, "name": "caf\xe9"}]}'
    document = parse_response(body, request="x", key="jobs")
    assert document["jobs"] is not None


@pytest.mark.parametrize("body", [b"", b"Internal error", b"[]", b'{"jobs": 5}', b'{"nodes": []}', b"{"])
def test_response_is_refused_when_it_does_not_match_the_request(body: bytes) -> None:
    with pytest.raises(SourceError):
        parse_response(body, request="x", key="jobs")


def test_version_is_found_when_spelled_either_way() -> None:
    assert version_of({"meta": {"Slurm": {"release": "22.05.8"}}}) == "22.05.8"
    assert version_of({"meta": {"slurm": {"release": "25.11.0"}}}) == "25.11.0"
    assert version_of({}) is None


def token(claims: object) -> str:
    payload = base64.urlsafe_b64encode(orjson.dumps(claims)).decode().rstrip("=")
    return f"head.{payload}.signature"


def test_expiry_is_read_when_the_token_has_one() -> None:
    assert read_token_expiry(token({"exp": 1_700_000_000, "sun": "alice"})) == 1_700_000_000
    assert read_token_expiry(token({"sun": "alice"})) is None
    assert read_token_expiry(token([1])) is None
    for junk in ("", "a.b", "a.!!!.c", "a.é.c"):
        assert read_token_expiry(junk) is None


def test_error_is_readable_when_a_response_is_nested_too_deeply() -> None:
    with pytest.raises(SourceError, match="nested too deeply"):
        parse_response(b'{"jobs": ' + b"[" * 100_000, request="squeue --json", key="jobs")
