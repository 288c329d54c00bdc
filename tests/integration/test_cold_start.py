"""The first minutes of a new installation: nothing is compiled yet, and the server says so instead of waiting or guessing."""

import urllib.error
import urllib.request
from pathlib import Path

import pytest
from servers.demo import get_json, running_demo, wait_until

from clusterscape.remote import connect


def test_a_server_answers_and_collects_while_it_compiles_when_nothing_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = tmp_path / "compiled"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(compiled))
    monkeypatch.setenv("CLUSTERSCAPE_SERVER__COMPILE_AHEAD", "true")
    with running_demo(tmp_path, gpus=64, needs_history=False) as url:
        # The cluster is collected and shown already, while what needs compiled code says how long it takes.
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/api/v1/scheduling/queue", timeout=60)
        assert refused.value.code == 503
        assert int(refused.value.headers["Retry-After"]) >= 1
        assert b"warming up: about" in refused.value.read()
        assert get_json(f"{url}/api/v1/rules")["judged_at"] is None

        # Python and the commands wait for it.
        assert connect(url).get("/scheduling/queue")["workloads"]
        wait_until(lambda: any(compiled.glob("compiled-*")))
        wait_until(lambda: get_json(f"{url}/api/v1/rules")["judged_at"] is not None)
        functions = set(compiled.rglob("*.nbi"))

        # Nothing that was compiled ahead is compiled again, whatever is asked of the real cluster.
        connect(url).send("POST", "/scheduling/whatif", {"futures": 2})
        workload = connect(url).get("/workloads", state="running", limit=1)["workloads"][0]["workload"]
        connect(url).get(f"/workloads/{workload}/diagnosis")
        assert set(compiled.rglob("*.nbi")) == functions

    marker = next(compiled.glob("compiled-*"))
    written = marker.stat().st_mtime_ns
    with running_demo(tmp_path, gpus=64, needs_history=False) as url:
        assert get_json(f"{url}/api/v1/scheduling/queue")["workloads"]
    assert marker.stat().st_mtime_ns == written
