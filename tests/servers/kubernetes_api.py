"""Writes to an API server, the stand-in or a real one, as a test's hand."""

import json
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

PLURALS = {
    "Node": "nodes",
    "Pod": "pods",
    "Namespace": "namespaces",
    "Job": "jobs",
    "Deployment": "deployments",
    "ReplicaSet": "replicasets",
    "ResourceSlice": "resourceslices",
    "ResourceClaim": "resourceclaims",
    "CustomResourceDefinition": "customresourcedefinitions",
    "ClusterQueue": "clusterqueues",
    "LocalQueue": "localqueues",
    "ResourceFlavor": "resourceflavors",
    "Workload": "workloads",
    "Queue": "queues",
    "PodGroup": "podgroups",
    "PyTorchJob": "pytorchjobs",
}


@dataclass
class Api:
    """One server."""

    url: str
    token: str | None = None
    tls: ssl.SSLContext | None = None

    def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        """One request; raises urllib's HTTPError."""
        headers = {"Content-Type": "application/json"} | (
            {"Authorization": f"Bearer {self.token}"} if self.token else {}
        )
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=30, context=self.tls) as answer:
            document: Json = json.loads(answer.read())
        return document

    def create(self, thing: Json) -> Json:
        """Make an object; of what the server keeps status apart, that too. Answers it as the server has it."""
        created = self.ask("POST", self._path(thing), thing)
        if "status" in thing and "." not in thing["apiVersion"].replace(".k8s.io", ""):
            created = self.set_status(created, thing["status"])
        return {"apiVersion": thing["apiVersion"], "kind": thing["kind"]} | created

    def set_status(self, thing: Json, status: Json) -> Json:
        """Replace an object's status, as its controller does."""
        path = f"{self._path(thing)}/{thing['metadata']['name']}"
        stored = self.ask("GET", path)
        return self.ask("PUT", f"{path}/status", stored | {"status": status})

    def delete(self, thing: Json) -> None:
        """Remove an object at once."""
        name = thing["metadata"]["name"]
        self.ask("DELETE", f"{self._path(thing)}/{name}?gracePeriodSeconds=0&propagationPolicy=Background")

    def install(self, definitions: list[Json]) -> None:
        """Make kinds known, and wait until the server serves them."""
        for thing in definitions:
            self.create(thing)
        for thing in definitions:
            spec = thing["spec"]
            path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
            deadline = time.monotonic() + 60
            while True:
                try:
                    self.ask("GET", path)
                    break
                except urllib.error.HTTPError as error:
                    error.close()
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.1)

    def _path(self, thing: Json) -> str:
        api = thing["apiVersion"]
        root = f"/apis/{api}" if "/" in api else f"/api/{api}"
        namespace = thing["metadata"].get("namespace")
        plural = PLURALS[thing["kind"]]
        return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"
