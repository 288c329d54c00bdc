"""Cuts the traces recorded on one H200 down to what ships with the demo (``demo/traces``): all ranks, what devices, links and
annotations did, and of the host's operators only the outermost. Times and durations stay as they were recorded.

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
NAME_LENGTH = 48  # of kernels: template arguments tell nothing to a reader


def cut(document: dict[str, Any], steps: set[int]) -> dict[str, Any]:
    """The document with the wanted events of the wanted steps; empty: all."""
    events = [event for event in document["traceEvents"] if event.get("ph") == "X" and "dur" in event]
    windows = [
        (event["ts"], event["ts"] + event["dur"])
        for event in events
        if (found := STEP.match(str(event["name"]))) and (not steps or int(found[1]) in steps)
    ]
    low, high = min(start for start, _ in windows), max(end for _, end in windows)
    inside = [event for event in events if low <= event["ts"] < high]
    launched = {
        event["args"].get("correlation")
        for event in inside
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    }
    kept = [_slim(event) for event in _outermost(inside) if _is_wanted(event, launched)]
    head = {
        key: document[key]
        for key in ("schemaVersion", "distributedInfo", "deviceProperties", "baseTimeNanoseconds")
        if key in document
    }
    head["deviceProperties"] = [
        {"id": each.get("id"), "name": each.get("name")} for each in head.get("deviceProperties", [])
    ][:1]
    meta = [
        event for event in document["traceEvents"] if event.get("ph") == "M" and event.get("name") == "process_name"
    ][:1]
    return head | {"traceEvents": meta + kept}


def _outermost(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events without host operators that lie in another host operator of their thread; those of collectives stay."""
    reach: dict[object, float] = {}
    kept = []
    for event in sorted(events, key=lambda each: (each["ts"], -each["dur"])):
        if event.get("cat") == "cpu_op" and not _is_talk(event):
            if event["ts"] + event["dur"] <= reach.get(event["tid"], 0.0):
                continue
            reach[event["tid"]] = event["ts"] + event["dur"]
        kept.append(event)
    return kept


def _is_talk(event: dict[str, Any]) -> bool:
    return any(word in str(event["name"]) for word in ("gloo", "c10d"))


def _is_wanted(event: dict[str, Any], launched: set[object]) -> bool:
    if event.get("cat") in ("cuda_runtime", "cuda_driver"):
        # When a rank's input was there is read off the calls that wait for the device.
        return (
            event["args"].get("correlation") in launched or "Synchronize" in event["name"] or "Event" in event["name"]
        )
    return event.get("cat") not in ("python_function", "ac2g", "Trace", "overhead")


def _slim(event: dict[str, Any]) -> dict[str, Any]:
    arguments = event.get("args", {})
    wanted = (
        arguments if _is_talk(event) else {key: arguments[key] for key in ("correlation", "stream") if key in arguments}
    )
    name = event["name"][:NAME_LENGTH] if event.get("cat") == "kernel" else event["name"]
    slim = {key: event[key] for key in ("ph", "cat", "pid", "tid")}
    return (
        slim
        | {"name": name, "ts": round(event["ts"], 3), "dur": round(event["dur"], 3)}
        | ({"args": wanted} if wanted else {})
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
