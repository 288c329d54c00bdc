"""Mutates JSON as JSON, so that most inputs get past the parser: a part is replaced, dropped, doubled or swapped with another."""

import copy
import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 2**64, 1e308, -0.0, 0.1, "", " ", "0", "-1", "NaN", "ä\u0000", "x" * 300,
    [], {}, [[]], [None], {"": None}, {"set": True, "infinite": True, "number": 4294967294}, [[[[[[]]]]]],
)  # fmt: skip


def mutate_json(
    data: bytes, max_size: int, seed: int, words: Sequence[str], otherwise: Callable[[bytes], bytes]
) -> bytes:
    """Another input like ``data``; what is no JSON, and every fourth one, is changed byte by byte by ``otherwise``."""
    rng = random.Random(seed)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return otherwise(data)
    if rng.random() < 0.25:
        return otherwise(data)
    for _ in range(rng.randint(1, 4)):
        document = _mutate(document, rng, words)
    try:
        changed = json.dumps(document, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return otherwise(data)
    return changed if len(changed) <= max_size else otherwise(data)


def _mutate(document: Any, rng: random.Random, words: Sequence[str]) -> Any:
    places = list(_places(document))
    if not places:
        return copy.deepcopy(rng.choice(ODD_VALUES))
    holder, key = rng.choice(places)
    match rng.randrange(6):
        case 0 | 1:
            holder[key] = copy.deepcopy(rng.choice(ODD_VALUES))
        case 2:
            holder[key] = rng.choice(words).strip('"')
        case 3:
            del holder[key]
        case 4:
            other, other_key = rng.choice(places)
            holder[key] = copy.deepcopy(other[other_key])
        case _:
            if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            else:
                holder[rng.choice(words).strip('"')] = copy.deepcopy(holder[key])
    return document


def _places(document: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    if depth > 20:
        return
    keys = list(document) if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        yield document, key
        yield from _places(document[key], depth + 1)
