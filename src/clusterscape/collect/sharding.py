"""Which of several collectors scrapes which exporter: rendezvous hashing, so that every one of them knows by itself.

A target goes to the shard whose hash with it is highest. With one shard more, only its share of the targets moves.
"""

import hashlib
from dataclasses import dataclass

from clusterscape.collect.targets import Target
from clusterscape.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Shard:
    """``number`` of ``count``, from 1 on. The first also reads what cannot be shared: the scheduler, a Prometheus."""

    number: int = 1
    count: int = 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @property
    def is_first(self) -> bool:
        """Whether it reads what only one may read."""
        return self.number == 1

    def owns_name(self, name: str) -> bool:
        """Whether a node, or a target without one, is this shard's."""
        if self.count == 1:
            return True
        return max(range(1, self.count + 1), key=lambda number: _weight(name, number)) == self.number

    def owns(self, target: Target) -> bool:
        """Whether this shard scrapes ``target``: by its node, else by its address."""
        return self.owns_name(target.node or f"{target.host}:{target.port}")


def parse_shard(text: str) -> Shard:
    """``2/3``; raises ConfigError where the number is above the count."""
    number, _, count = text.partition("/")
    shard = Shard(int(number), int(count))
    if shard.number > shard.count:
        raise ConfigError(
            f"setting `collect.shard` = {text!r} is wrong: there are {shard.count} shards",
            hint=f"Number them from 1/{shard.count} to {shard.count}/{shard.count}.",
        )
    return shard


def _weight(name: str, number: int) -> bytes:
    return hashlib.blake2b(f"{number} {name}".encode("utf-8", "surrogateescape"), digest_size=8).digest()
