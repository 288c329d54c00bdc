"""Reports words that the project does not use, with what to write instead.

The list is tools/words.toml. Reads names, comments, docstrings and messages of the sources, and the text of the docs; prints
``file:line: word → instead`` for each and exits with status 1 if there is one. ``--count`` prints counts of the whole
project by word and folder.
"""

import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tools" / "words.toml"
SUFFIXES = {".py", ".ts", ".tsx", ".css", ".md", ".toml"}


@dataclass(frozen=True)
class Word:
    """A word to avoid. ``pattern``: a regular expression; ``only``: suffixes of files to check (empty: all)."""

    pattern: re.Pattern[str]
    instead: str
    only: frozenset[str]


@dataclass(frozen=True)
class WordList:
    """``names``: words that are names of the API or of stored data, with the files that may contain them."""

    words: list[Word]
    checked: list[str]
    exempt: list[str]
    names: dict[str, list[str]]


def read_words(path: Path) -> WordList:
    """Read the list of words."""
    table = tomllib.loads(path.read_text())
    words = [
        Word(
            re.compile(entry["word"], re.IGNORECASE if entry.get("ignore_case", True) else 0),
            entry["instead"],
            frozenset(entry.get("only", [])),
        )
        for entry in table["words"]
    ]
    return WordList(words, table["checked"], table["exempt"], table["names"])


def list_files(folders: list[str], exempt: list[str]) -> Iterator[Path]:
    """Source and text files below these folders."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in SUFFIXES and path.is_file() and not any(path.match(pattern) for pattern in exempt):
            yield path


def find_words(listed: WordList, paths: Iterator[Path]) -> Iterator[tuple[Path, int, str, str]]:
    """Yield file, line, matched word and what to write instead."""
    for path in paths:
        chosen = [word for word in listed.words if not word.only or path.suffix in word.only]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for word in chosen:
                for match in word.pattern.finditer(line):
                    if str(path.relative_to(ROOT)) not in listed.names.get(match[0], []):
                        yield path, number, match[0], word.instead


def main() -> int:
    listed = read_words(LIST)
    counts_all = "--count" in sys.argv
    occurrences = list(find_words(listed, list_files([] if counts_all else listed.checked, listed.exempt)))
    if counts_all:
        counts = Counter((match.lower(), path.relative_to(ROOT).parts[0]) for path, _, match, _ in occurrences)
        for (match, folder), count in counts.most_common():
            print(f"{count:6} {match:24} {folder}")
        return 0
    for path, number, match, instead in occurrences:
        print(f"{path.relative_to(ROOT)}:{number}: {match} → {instead}")
    return 1 if occurrences else 0


if __name__ == "__main__":
    sys.exit(main())
