"""Reduces the traces recorded on one H200 to those shipped with the demo (``demo/traces``): all ranks, with device events, links,
annotations and only the outermost host operators. Times and durations are unchanged.

    python tools/cut_traces.py RECORDED
"""

import argparse
import gzip
import json
import re
from pathlib import Path
from typing import Any

DEFAULT_OUTPUT = Path(__file__).parents[1] / "src" / "clusterscape" / "demo" / "traces"
STEP = re.compile(r"^ProfilerStep#(\d+)$")
NAME_LENGTH = 48  # of kernels: template arguments are not useful to readers


def cut(document: dict[str, Any], steps: set[int]) -> dict[str, Any]:
    """The document with the selected events of ``steps``; empty: all steps."""
    events = [event for event in document["traceEvents"] if event.get("ph") == "X" and "dur" in event]
    windows = [
        (event["ts"], event["ts"] + event["dur"])
        for event in events
        if (match := STEP.match(str(event["name"]))) and (not steps or int(match[1]) in steps)
    ]
    low, high = min(start for start, _ in windows), max(end for _, end in windows)
    inside = [event for event in events if low <= event["ts"] < high]
    launched = {
        event["args"].get("correlation")
        for event in inside
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    }
    selected = [_slim(event) for event in _outermost(inside) if _is_selected(event, launched)]
    head = {
        key: document[key]
        for key in ("schemaVersion", "distributedInfo", "deviceProperties", "baseTimeNanoseconds")
        if key in document
    }
    head["deviceProperties"] = [
        {"id": device.get("id"), "name": device.get("name")} for device in head.get("deviceProperties", [])
    ][:1]
    meta = [
        event for event in document["traceEvents"] if event.get("ph") == "M" and event.get("name") == "process_name"
    ][:1]
    return head | {"traceEvents": meta + selected}


def _outermost(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events without host operators that are nested in another of the same thread; operators of collectives are kept."""
    reach: dict[object, float] = {}
    kept = []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        if event.get("cat") == "cpu_op" and not _is_collective(event):
            if event["ts"] + event["dur"] <= reach.get(event["tid"], 0.0):
                continue
            reach[event["tid"]] = event["ts"] + event["dur"]
        kept.append(event)
    return kept


def _is_collective(event: dict[str, Any]) -> bool:
    return any(word in str(event["name"]) for word in ("gloo", "c10d"))


def _is_selected(event: dict[str, Any], launched: set[object]) -> bool:
    if event.get("cat") in ("cuda_runtime", "cuda_driver"):
        # Calls that wait for the device show when a rank's input was ready.
        return (
            event["args"].get("correlation") in launched or "Synchronize" in event["name"] or "Event" in event["name"]
        )
    return event.get("cat") not in ("python_function", "ac2g", "Trace", "overhead")


def _slim(event: dict[str, Any]) -> dict[str, Any]:
    arguments = event.get("args", {})
    selected = (
        arguments
        if _is_collective(event)
        else {key: arguments[key] for key in ("correlation", "stream") if key in arguments}
    )
    name = event["name"][:NAME_LENGTH] if event.get("cat") == "kernel" else event["name"]
    slim = {key: event[key] for key in ("ph", "cat", "pid", "tid")}
    return (
        slim
        | {"name": name, "ts": round(event["ts"], 3), "dur": round(event["dur"], 3)}
        | ({"args": selected} if selected else {})
    )


def main() -> None:
    """Read, cut, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="folder with ddp_rank*.json.gz and pipe_rank*.json.gz")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT)
    parser.add_argument("--pipe-steps", type=int, nargs="*", default=[5, 6], help="steps kept of the pipeline")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    total = 0
    for path in sorted(arguments.source.glob("*_rank*.json.gz")):
        steps = set(arguments.pipe_steps) if path.name.startswith("pipe") else set()
        text = json.dumps(cut(json.loads(gzip.decompress(path.read_bytes())), steps), separators=(",", ":")).encode()
        packed = gzip.compress(text, 9, mtime=0)
        (arguments.output / path.name).write_bytes(packed)
        total += len(packed)
        print(f"{path.name}: {len(packed):,} bytes")
    print(f"{total:,} bytes")


if __name__ == "__main__":
    main()
