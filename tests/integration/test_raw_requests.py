"""A real server and clients that violate HTTP: each is answered or disconnected, and others are served meanwhile."""

import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from servers.demo import get_json, wait_until
from servers.raw_client import RawClient
from servers.serving import Served, serving

LIMITS = """
[limits.http]
header_timeout_s = 1.0
body_timeout_s = 1.0
min_bytes_per_s = 100000
write_timeout_s = 1.0
connections_per_address = 20
"""
ELSEWHERE = "127.0.0.3"
"""An address that the tests of connections do not fill."""
ENDLESS_BYTES = 200 * 2**20
JSON_TYPE = ("Content-Type: application/json",)
CHUNKED = ("Transfer-Encoding: chunked", *JSON_TYPE)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("raw"), LIMITS) as served:
        yield served


def refused(server: Served, reason: str) -> int:
    with RawClient(server.url, address=ELSEWHERE) as client:
        text = client.get("/metrics").body.decode()
    line = next(
        line for line in text.splitlines() if line.startswith(f'clusterscape_http_refused_total{{reason="{reason}"}}')
    )
    return int(float(line.split()[-1]))


def endless(part: bytes) -> Iterator[bytes]:
    return itertools.repeat(part, ENDLESS_BYTES // len(part))


def check_ended(client: RawClient, status: int) -> None:
    """The connection was ended with this answer in the one error shape, and nothing after it."""
    answer = client.read_answer()
    assert answer.status == status
    assert answer.headers["connection"] == "close"
    assert set(json.loads(answer.body)["error"]) == {"code", "message", "hint"}
    assert client.read_to_the_end() == b""


@pytest.mark.parametrize(
    ("begin", "part", "status", "reason"),
    [
        (b"GET /", b"a" * 65536, 414, "long_url"),
        (b"GET /healthz HTTP/1.1\r\nX-Endless: ", b"b" * 65536, 431, "large_headers"),
        (b"GET /healthz HTTP/1.1\r\n", b"b" * 65536, 431, "large_headers"),
        (b"GET /healthz HTTP/1.1\r\n", b"X-A: " + b"b" * 1000 + b"\r\n", 431, "large_headers"),
        (b"GET /healthz HTTP/1.1\r\n", b"A:\r\n", 431, "large_headers"),
    ],
    ids=["url", "header-value", "header-name", "large-headers", "many-headers"],
)
def test_connection_is_ended_when_a_head_has_no_end(
    server: Served, begin: bytes, part: bytes, status: int, reason: str
) -> None:
    before = refused(server, reason)
    with RawClient(server.url) as client:
        client.send_until_it_ends([begin])
        sending = threading.Thread(target=client.send_until_it_ends, args=(endless(part),))
        sending.start()
        answer = client.read_answer()
        sending.join()
    assert answer.status == status
    assert json.loads(answer.body)["error"]["code"] == "too_large"
    assert refused(server, reason) == before + 1


def test_longest_address_and_all_headers_are_read_when_they_are_within_limits(server: Served) -> None:
    with RawClient(server.url) as client:
        headers = [f"X-Header-{number}: {'v' * 500}" for number in range(98)]
        assert client.get(f"/healthz?{'q' * 65000}", *headers).status == 200
        assert client.get("/healthz").status == 200


@pytest.mark.parametrize(
    "half", [b"G", b"GET /healthz", b"GET /healthz HTTP/1.1\r\nHo", b"POST / HTTP/1.1\r\nA: b\r\n"]
)
def test_request_times_out_when_only_half_of_its_head_comes(server: Served, half: bytes) -> None:
    with RawClient(server.url) as client:
        client.send(half)
        check_ended(client, 408)


def test_request_times_out_when_its_head_comes_a_byte_at_a_time(server: Served) -> None:
    def trickle() -> Iterator[bytes]:
        for byte in b"GET /healthz?" + b"q" * 10_000:
            time.sleep(0.05)
            yield bytes([byte])

    with RawClient(server.url) as client:
        sending = threading.Thread(target=client.send_until_it_ends, args=(trickle(),))
        sending.start()
        assert client.read_answer().status == 408
        sending.join()


def test_connection_ends_without_an_answer_when_nothing_is_asked(server: Served) -> None:
    with RawClient(server.url) as silent, RawClient(server.url) as blank:
        blank.send(b"\r\n\r\n")
        assert silent.read_to_the_end() == b""
        assert blank.read_to_the_end() == b""


def test_second_request_times_out_when_the_first_was_whole(server: Served) -> None:
    with RawClient(server.url) as client:
        client.send(client.head("GET /healthz"), b"GET /hea")
        assert client.read_answer().status == 200
        check_ended(client, 408)


@pytest.mark.parametrize(
    "line",
    [
        b"NONSENSE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nA: b\0c\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /api/v1/session HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /api/v1/session HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST /api/v1/session HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nnot a size\r\n",
    ],
)
def test_connection_is_ended_when_a_request_is_not_http(server: Served, line: bytes) -> None:
    with RawClient(server.url) as client:
        client.send(line)
        check_ended(client, 400)


def test_body_is_refused_when_a_chunked_session_has_no_end(server: Served) -> None:
    before = refused(server, "large_body")
    with RawClient(server.url) as client:
        client.send(client.head("POST /api/v1/session", *CHUNKED))
        sending = threading.Thread(
            target=client.send_until_it_ends, args=(endless(b"10000\r\n" + b"c" * 65536 + b"\r\n"),)
        )
        sending.start()
        answer = client.read_answer()
        sending.join()
    assert answer.status == 413
    assert answer.headers["connection"] == "close"
    assert "16,384" in json.loads(answer.body)["error"]["message"]
    assert refused(server, "large_body") == before + 1


@pytest.mark.parametrize(
    ("path", "length"),
    [
        ("/api/v1/session", 16 * 1024 + 1),
        ("/api/v1/rules/read", 8 * 2**20 + 1),
        ("/api/v1/runs/a/files/b", 64 * 2**20 + 1),
    ],
)
def test_body_is_refused_unread_when_it_says_that_it_is_too_large(server: Served, path: str, length: int) -> None:
    with RawClient(server.url) as client:
        client.send(client.head(f"POST {path}", f"Content-Length: {length}", "Content-Type: application/json"))
        check_ended(client, 413)


def test_body_times_out_when_it_is_shorter_than_it_says(server: Served) -> None:
    with RawClient(server.url) as client:
        client.send(client.head("POST /api/v1/rules/read", "Content-Length: 100"), b"{}")
        check_ended(client, 408)


def test_connection_is_ended_when_a_body_is_longer_than_it_says(server: Served) -> None:
    with RawClient(server.url) as client:
        client.send(client.head("POST /api/v1/rules/read", "Content-Length: 2"), b"{}GARBAGE\r\n\r\n")
        assert client.read_answer().status == 422
        check = client.read_to_the_end()
        assert check == b"" or b" 400 " in check.partition(b"\r\n")[0]


@pytest.mark.parametrize(
    "begin",
    [b"", b"5\r\n{", b"1", b"1;" + b"e" * 100, b"2\r\n{}\r\n", b"2\r\n{}\r\n0\r\nTrailer: "],
    ids=["nothing", "chunk", "size", "extension", "between", "trailer"],
)
def test_body_times_out_when_a_chunked_one_stalls(server: Served, begin: bytes) -> None:
    with RawClient(server.url) as client:
        client.send(client.head("POST /api/v1/rules/read", *CHUNKED), begin)
        check_ended(client, 408)


def test_body_times_out_when_it_trickles(server: Served) -> None:
    def trickle() -> Iterator[bytes]:
        for _ in range(10_000):
            time.sleep(0.02)
            yield b"1\r\n \r\n"

    with RawClient(server.url) as client:
        client.send(client.head("POST /api/v1/rules/read", *CHUNKED))
        sending = threading.Thread(target=client.send_until_it_ends, args=(trickle(),))
        sending.start()
        assert client.read_answer().status == 408
        sending.join()


def test_endless_trailers_are_refused_when_they_follow_a_body(server: Served) -> None:
    before = refused(server, "large_headers")
    with RawClient(server.url) as client:
        client.send(client.head("POST /api/v1/rules/read", *CHUNKED), b"2\r\n{}\r\n0\r\n")
        sending = threading.Thread(target=client.send_until_it_ends, args=(endless(b"T: " + b"t" * 1000 + b"\r\n"),))
        sending.start()
        assert client.read_answer().status == 431
        sending.join()
    assert refused(server, "large_headers") == before + 1


def test_trailers_name_nobody_when_they_are_those_of_a_proxy(tmp_path: Path) -> None:
    config = """
    [auth]
    modes = ["proxy"]
    trusted_proxies = ["127.0.0.1"]
    roles = { ops = "admin" }
    """
    named = ("X-Remote-User: root", "X-Remote-Groups: ops", "X-ClusterScape-Page: 1")
    trailers = "\r\n".join(["0", *named, "", ""]).encode()
    with serving(tmp_path, config) as server, RawClient(server.url) as client:
        client.send(client.head("POST /api/v1/rules/read", *CHUNKED), b"2\r\n{}\r\n", trailers)
        assert client.read_answer().status == 401
        client.send(client.head("POST /api/v1/rules/read", *CHUNKED, *named), b"2\r\n{}\r\n0\r\n\r\n")
        assert client.read_answer().status == 422
        large = client.head("POST /api/v1/rules/read", *CHUNKED)
        client.send(large)
        refusal = client.read_answer()
        assert refusal.status == 401, "of whom nobody knows nothing is read"
        assert refusal.headers["connection"] == "close"


def test_connection_serves_on_when_bodies_are_whole(server: Served) -> None:
    with RawClient(server.url) as client:
        for _ in range(3):
            client.send(client.head("POST /api/v1/rules/read", *CHUNKED), b"2\r\n{}\r\n", b"0\r\nTrailer: x\r\n\r\n")
            assert client.read_answer().status == 422
            client.send(client.head("POST /api/v1/rules/read", "Content-Length: 2"), b"{}")
            assert client.read_answer().status == 422
            assert client.get("/healthz").status == 200


def test_upload_is_received_when_it_is_larger_than_other_bodies(server: Served) -> None:
    content = b"x" * (9 * 2**20)
    with RawClient(server.url) as client:
        new = b'{"name": "large"}'
        client.send(
            client.head("POST /api/v1/traces", "Content-Type: application/json", f"Content-Length: {len(new)}"), new
        )
        trace = json.loads(client.read_answer().body)["trace_id"]
        client.send(client.head(f"PUT /api/v1/traces/{trace}/files/a.json", f"Content-Length: {len(content)}"), content)
        assert json.loads(client.read_answer().body)["size"] == len(content)
        client.send(client.head(f"PUT /api/v1/traces/{trace}/files/b.json", "Transfer-Encoding: chunked"))
        client.send(*[b"100000\r\n" + b"x" * 2**20 + b"\r\n"] * 9, b"0\r\n\r\n")
        assert json.loads(client.read_answer().body)["size"] == len(content)
        client.send(client.head("POST /api/v1/runs/a/files/b", f"Content-Length: {len(content)}"), content)
        assert client.read_answer().status == 422, "it holds no frame, but it is read"
        assert client.get("/healthz").status == 200
    assert server.own_metric("clusterscape_http_held_body_bytes") == 0


def test_body_is_asked_for_when_its_client_waits_to_be(server: Served) -> None:
    with RawClient(server.url) as client:
        client.send(client.head("POST /api/v1/rules/read", "Content-Length: 13", "Expect: 100-continue", *JSON_TYPE))
        assert client.receive() == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(b'{"text": "a"}')
        assert client.read_answer().status == 200
        client.send(client.head("POST /api/v1/session", "Content-Length: 100000", "Expect: 100-continue"))
        check_ended(client, 413)


def test_connection_is_ended_when_the_answer_comes_before_the_body(server: Served) -> None:
    with RawClient(server.url) as client:
        client.send(client.head("POST /api/v1/nothing", "Content-Length: 1000000"), b"begin")
        answer = client.read_answer()
        assert answer.status in (404, 405)
        assert answer.headers["connection"] == "close"
        assert client.read_to_the_end() == b""


def test_request_is_answered_plainly_when_it_asks_for_an_upgrade(server: Served) -> None:
    upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAA")
    with RawClient(server.url) as client:
        client.send(client.head("GET /healthz", *upgrade), client.head("GET /metrics"))
        assert client.read_answer().status == 200
        assert client.read_to_the_end() == b""


def test_connections_beyond_the_limit_are_refused_when_one_address_has_too_many(server: Served) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(RawClient(server.url, address="127.0.0.4")) for _ in range(20)]
        for client in held:
            assert client.get("/healthz").status == 200
        with RawClient(server.url, address="127.0.0.4") as one_more:
            check_ended(one_more, 503)
        with RawClient(server.url, address="127.0.0.5") as another:
            assert another.get("/healthz").status == 200
        held[0].close()

        def is_served() -> bool:
            with RawClient(server.url, address="127.0.0.4") as client:
                client.send(client.head("GET /healthz"))
                return client.read_answer().status == 200

        wait_until(is_served)


def test_connections_beyond_the_limit_are_refused_when_many_addresses_have_too_many(tmp_path: Path) -> None:
    with serving(tmp_path, "[limits.http]\nconnections = 5") as server, ExitStack() as stack:
        clients = [stack.enter_context(RawClient(server.url, address=f"127.0.1.{at}")) for at in range(1, 6)]
        assert [client.get("/healthz").status for client in clients] == [200] * 5
        with RawClient(server.url, address="127.0.1.9") as one_more:
            check_ended(one_more, 503)


def test_connection_ends_after_its_answers_when_too_many_requests_are_pipelined(server: Served) -> None:
    with RawClient(server.url) as client:
        client.send(client.head("GET /healthz") * 2000)
        answers = client.read_to_the_end()
    assert answers.count(b"HTTP/1.1") == answers.count(b"HTTP/1.1 200 OK")
    assert 17 <= answers.count(b"HTTP/1.1 200 OK") < 100
    assert refused(server, "pipelined") >= 1


def test_pipelined_requests_are_all_answered_when_they_are_few(server: Served) -> None:
    with RawClient(server.url) as client:
        client.send(client.head("GET /healthz") * 10)
        assert [client.read_answer().status for _ in range(10)] == [200] * 10
        assert client.get("/healthz").status == 200


def test_client_is_ended_and_live_streams_are_not_when_it_does_not_read(server: Served) -> None:
    wait_until(lambda: server.own_metric("clusterscape_live_clients") == 0)  # those of other tests have ended
    before = refused(server, "slow_reader")
    with RawClient(server.url) as live, RawClient(server.url, receive_bytes=4096) as deaf:
        live.send(live.head("GET /api/v1/live"))
        live.receive_until(b"event: version")
        deaf.send(deaf.head("GET /openapi.json") * 17)
        wait_until(lambda: refused(server, "slow_reader") > before)
        rest = deaf.read_to_the_end()
        assert rest.count(b"HTTP/1.1 200 OK") < 17
        get_json(f"{server.url}/healthz")
        assert server.own_metric("clusterscape_live_clients") == 1
        live.receive_until(b"event: version")  # its heartbeat


def test_live_stream_ends_when_its_client_leaves_with_another_request_waiting(server: Served) -> None:
    wait_until(lambda: server.own_metric("clusterscape_live_clients") == 0)
    with RawClient(server.url) as live:
        live.send(live.head("GET /api/v1/live") + live.head("GET /healthz"))
        assert b"200 OK" in live.receive()
        assert server.own_metric("clusterscape_live_clients") == 1
    wait_until(lambda: server.own_metric("clusterscape_live_clients") == 0)


@pytest.mark.parametrize(
    "path",
    [
        "/%00",
        "/api/v1/workloads/%00",
        "/assets/%00",
        "/api/v1/nodes/%1b%5b2J",
        "/api/v1/search?q=%00",
        "/%c2%85",
        "/%ff",
    ],
)
def test_address_is_refused_when_it_holds_control_characters(server: Served, path: str) -> None:
    with RawClient(server.url) as client:
        answer = client.get(path)
        assert answer.status == 400
        assert json.loads(answer.body)["error"]["code"] == "malformed"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert client.get("/healthz").status == 200


def test_log_is_short_and_holds_nothing_of_them_when_many_requests_are_refused(tmp_path: Path) -> None:
    with serving(tmp_path, "") as server:
        for _ in range(100):
            with RawClient(server.url) as client:
                assert client.get("/secret%00", "X-Secret: hunter2").status == 400
                client.send(b"secret nonsense\r\n\r\n")
                assert client.read_answer().status == 400
        text = server.log.read_text()
    assert text.count("bad_url") == 1
    assert text.count("malformed") == 1
    assert "secret" not in text
    assert "hunter2" not in text
    assert "Traceback" not in text
    assert len(text) < 2000
