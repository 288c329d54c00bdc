"""A raw socket client: partial, malformed and endless requests."""

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from urllib.parse import urlsplit

TIMEOUT_S = 120.0
"""Longer than any limit of a test's server; a client that waits longer gets no response."""
SMALL_SEGMENT = 536
"""Bytes of the smallest segments that TCP has by default."""


@dataclass(frozen=True)
class RawAnswer:
    """One answer of a server."""

    status: int
    headers: dict[str, str]
    body: bytes


class RawClient:
    """One connection."""

    def __init__(self, url: str, *, address: str = "127.0.0.1", receive_bytes: int | None = None) -> None:
        """``address``: of this end; ``receive_bytes``: what the kernel may keep for a client that does not read.

        The server's end follows: with segments of 64 KiB, as on loopback, its kernel takes 3 MB before the server has to wait.
        """
        parts = urlsplit(url)
        self.host = parts.netloc
        self._socket = socket.socket()
        self._socket.settimeout(TIMEOUT_S)
        if receive_bytes is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SMALL_SEGMENT)
        self._socket.bind((address, 0))
        self._socket.connect((parts.hostname, parts.port))
        self._unread = b""

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def send(self, *parts: bytes) -> None:
        self._socket.sendall(b"".join(parts))

    def head(self, line: str, *headers: str) -> bytes:
        """A whole head with a Host header."""
        return "\r\n".join([f"{line} HTTP/1.1", f"Host: {self.host}", *headers, "", ""]).encode()

    def get(self, path: str, *headers: str) -> RawAnswer:
        self.send(self.head(f"GET {path}", *headers))
        return self.read_answer()

    def send_until_it_ends(self, parts: Iterable[bytes]) -> None:
        """Send part after part; the server may end the connection at any of them."""
        self._socket.settimeout(TIMEOUT_S)
        try:
            for part in parts:
                self._socket.sendall(part)
        except ConnectionError:
            return

    def read_answer(self) -> RawAnswer:
        """The next answer with a Content-Length."""
        while b"\r\n\r\n" not in self._unread:
            self._receive()
        head, _, self._unread = self._unread.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        while len(self._unread) < length:
            self._receive()
        body, self._unread = self._unread[:length], self._unread[length:]
        return RawAnswer(int(status.split()[1]), headers, body)

    def read_to_the_end(self) -> bytes:
        """All that comes until the server ends the connection."""
        try:
            while True:
                self._receive()
        except ConnectionError:
            pass
        answer, self._unread = self._unread, b""
        return answer

    def receive(self) -> bytes:
        """Reads the next bytes."""
        self._receive()
        received, self._unread = self._unread, b""
        return received

    def receive_until(self, text: bytes) -> None:
        """Read on until ``text`` has come, in however many pieces."""
        while text not in self._unread:
            self._receive()
        _, _, self._unread = self._unread.partition(text)

    def _receive(self) -> None:
        received = self._socket.recv(1 << 20)
        if not received:
            raise ConnectionError("the server ended the connection")
        self._unread += received
