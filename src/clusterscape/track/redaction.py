"""Masks secrets in everything a run records: by name, by pattern, and by the values of secret variables and options.

Decides what is a secret, but not which variables are recorded (``reproduce.py``). Standard library
only, no imports of ClusterScape: ``startup/sitecustomize.py`` loads this file by path into the script's Python, whatever
its version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

MASK = "(masked)"


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# A name with one of these words is secret, unless its last word shows that the value only describes the secret.
_SECRET_WORDS = _set(
    "password passwords passwd passphrase pwd secret secrets credential credentials creds jwt apikey accesskey secretkey "
    "privatekey authtoken accesstoken authorization bearer cookie cookies sshpass pgpass"
)
_SECRET_ENDINGS = ("password", "passwd", "passphrase", "apikey", "authtoken", "secret")
_DESCRIBING_WORDS = _set(
    "file path dir folder type mode len length size dim count num url uri endpoint host policy ttl expiry timeout enabled "
    "required provider field prompt format header name env var"
)
# Secret only at the end of a name: elsewhere they are often harmless in training (max_tokens, forward_pass, cache_key).
_LAST_WORDS = _set("token pass auth pat dsn sas")
_KEY_OWNERS = _set(
    "api access secret private auth account encryption signing master service license storage subscription shared deploy "
    "ssh app admin webhook hmac"
)
_LOOKUP_KEYS = _set(
    "cache sort primary partition group index hash dict state map foreign lookup dedup row sample config feature"
)
# Words of a vocabulary, not of a login: pad_token, eos_token.
_VOCABULARY = _set(
    "pad eos bos unk mask cls sep sot eot boi eoi special image audio video vision text prompt stop start end begin next prev "
    "first last new per max min num n every blank class query latent register control placeholder decoder encoder input "
    "output source target response cost"
)
_SWITCHES = _set("use no with without has is enable disable skip require needs")
_NOT_SECRET = _set("pwd oldpwd")
_SIGNATURES = _set("sig signature")
_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_ALONE = r"(?<![A-Za-z0-9])"
_PEM = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
# A literal that every match contains, and the pattern, which is compiled only if a text contains the literal.
_SHAPES = (
    ("PRIVATE KEY", _PEM + r"(?:[^-]|-(?!----BEGIN)){0,20000}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
    ("PRIVATE KEY", _PEM + r"(?:(?:\\[nr]|[\s\"'+,-]){1,40}[A-Za-z0-9+/=]{16,})+"),
    ("eyJ", _ALONE + r"eyJ[\w-]{6,}(?:\.[\w-]*){2,4}"),  # JWT, JWE
    *((begin, rf"{_ALONE}{begin}[A-Z0-9]{{16}}\b") for begin in ("AKIA", "ASIA", "AGPA", "AIDA", "AROA")),  # AWS
    *((begin, rf"{_ALONE}{begin}[A-Za-z0-9]{{20,}}") for begin in ("ghp_", "gho_", "ghs_", "ghu_", "ghr_")),
    ("github_pat_", _ALONE + r"github_pat_\w{20,}"),
    *((begin, rf"{_ALONE}{begin}[\w.-]{{16,}}") for begin in ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-")),
    ("hf_", _ALONE + r"hf_(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{20,}"),
    ("sk-", r"(?<![A-Za-z0-9-])sk-(?=[\w-]*\d)[\w-]{20,}"),  # OpenAI, Anthropic
    *((begin, rf"{_ALONE}{begin}[A-Za-z0-9]{{10,}}") for begin in ("sk_live_", "sk_test_", "rk_live_", "rk_test_")),
    ("xox", _ALONE + r"xox[a-z]-[A-Za-z0-9-]{10,}"),
    ("xapp-", _ALONE + r"xapp-[A-Za-z0-9-]{10,}"),
    ("hooks.slack.com", r"(?<=hooks\.slack\.com/services/)[\w/]{20,}"),
    ("AIza", _ALONE + r"AIza[\w-]{30,}"),
    *(
        (begin, rf"{_ALONE}{re.escape(begin)}[\w-]{{20,}}")
        for begin in ("ya29.", "GOCSPX-", "hvs.", "nvapi-", "wandb_v1_")
    ),
    ("npm_", _ALONE + r"npm_[A-Za-z0-9]{30,}"),
    ("pypi-", _ALONE + r"pypi-[\w-]{40,}"),
    ("dapi", _ALONE + r"dapi[0-9a-f]{32}"),
    ("cst_", _ALONE + r"cst_[\w-]{20,}"),  # our own tokens
)
_ADDRESS = re.compile(
    r"://(?:(?P<user>[^\s/?#:@'\"<>]{0,256}):(?!\d{1,5}(?:[/?#,\s'\"<>]|$))(?P<password>[^\s'\"<>]{1,1024})@"
    r"|(?P<token>[^\s/?#:@'\"<>]{16,1024})@)"
)
_AUTHORIZATION = re.compile(
    r"(?i)(authorization[\"'\]]{0,2}\s{0,3}[:=]\s{0,3}\\?[\"']?[a-z]{3,20}\s+|\b(?:bearer|basic)\s+)(?P<value>[^\s\"'\\,;]{6,})"
)
_CANDIDATE = re.compile(r"(?i)(?:pass|pwd|secret|cred|token|jwt|key|auth|cookie|dsn|sas|pat|sig)[\w.-]{0,40}")
_ASSIGNED = re.compile(
    r"\\?[\"'\]]{0,2}(?:\s{0,3}:\s{0,3}[A-Za-z][\w\[\]., |]{0,40})?\s{0,3}(?:=>|:=|=(?!=)|:(?![:/]))[^\S\n]{0,3}"
)
_PAIRED = re.compile(r"\\?[\"']\s{0,3},\s{0,3}(?=\\?[\"'])")
_OPTION_GAP = re.compile(r"\\?[\"']?,?[^\S\n]+(?!-)")
_DEFAULT = re.compile(r"[^\n]{0,200}?\bdefault\s{0,3}=\s{0,3}")
_QUOTED = re.compile(
    r"(?P<open>[rbfuRBFU]{0,2}(?P<quote>\"\"\"|'''|\\?\"|\\?'))(?P<value>(?:(?!(?P=quote)|\n\n)(?:\\[^\n]|(?s:.))){0,20000})(?P=quote)"
)
_UNIT = r"(?:\(masked\)|\\(?![\"'nrt\\])|[^\s\"'`\\])"
_BARE = re.compile(_UNIT + r"+?(?=[\])}>,;]*(?:[\s\"'`\\]|\Z))")
_RANDOM = re.compile(r"[A-Za-z0-9+/=_-]{20,512}")
_QUERY_VALUE = re.compile(r"[^\s\"'&#]+")
_REST_OF_LINE = re.compile(r"[^\n\"']+")
_LINE_BEGIN = re.compile(r"(?:^|\n)[+ -]?[ \t]*(?:- )?[\"']?(?:export )?\Z")
_EMPTY = re.compile(r"(?i)\s*(?:|none|null|true|false|yes|no|on|off|\*+|\.{3}|…)\s*")
_REFERENCE = re.compile(
    r"\$[A-Z_][A-Z0-9_]{0,100}|\$\{[^}]{0,200}\}|\$\([^)]{0,200}\)|\{\{[^}]{0,200}\}\}|<[^<>]{0,40}>|%\(\w{1,40}\)s"
)
_SHORT_NUMBER = re.compile(r"[+-]?\d{1,9}(?:\.\d*)?(?:[eE][+-]?\d+)?|\[[A-Z]{1,20}\]")
_TEMPLATE = re.compile(r"(?:[A-Za-z]{1,20} )?\{[^{}]{0,200}\}")
_HIGH_ENTROPY = re.compile(r"[0-9a-fA-F]{32,}|(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=\D*\d)[A-Za-z0-9+/=_-]{20,}")
_PLAIN_NAME = re.compile(r"[\w.+@/-]+")
_SHELL_OPTION = re.compile(r"-[a-z]*c")
_SPACE = re.compile(r"\s")
_CODE_SUFFIXES = tuple(
    _set(
        ".py .pyi .pyx .ipynb .c .h .cc .cpp .cxx .hpp .cu .cuh .js .jsx .ts .tsx .go .rs .java .kt .scala .jl .r .rb .lua "
        ".swift"
    )
)
# Options with credentials whose names do not tell.
_LOGIN_OPTIONS = {
    "sshpass": ("-p",),
    "curl": ("-u", "--user", "-U", "--proxy-user"),
    "redis-cli": ("-a",),
    "login": ("-p",),  # of docker and podman
    "mongosh": ("-p",),
}


def is_secret_name(name: str) -> bool:
    """Whether a variable, option or parameter of this name holds a secret."""
    words = [word.lower() for word in _NAME_WORD.findall(name)]
    while words and (words[-1].isdigit() or words[-1] in ("value", "b64", "base")):
        words.pop()
    if not words or "_".join(words) in _NOT_SECRET or words[-1] in _DESCRIBING_WORDS:
        return False
    if any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words):
        return True
    if any(word == "key" and words[at] in _KEY_OWNERS for at, word in enumerate(words[1:])):
        return True
    if words[-1] in _LAST_WORDS or words[-1].endswith("token"):
        return len(words) == 1 or words[-2] not in _VOCABULARY
    return words[-1] == "key" and len(words) > 1 and name.isupper() and words[-2] not in _LOOKUP_KEYS


def _may_be_key(name: str) -> bool:
    """Whether the name is secret only if the value looks random."""
    words = [word.lower() for word in _NAME_WORD.findall(name)]
    return bool(words) and words[-1] in ("key", "session") and not (len(words) > 1 and words[-2] in _LOOKUP_KEYS)


def _is_secret(name: str, value: str) -> bool:
    if _EMPTY.fullmatch(value) or value == MASK or _REFERENCE.fullmatch(value):
        return False
    if is_secret_name(name):
        words = {word.lower() for word in _NAME_WORD.findall(name)}
        if "key" in words and not words & (_KEY_OWNERS | _SECRET_WORDS):
            return _is_recognizable(value)
        return bool(words & _SECRET_WORDS) or not _SHORT_NUMBER.fullmatch(value)
    return _may_be_key(name) and _HIGH_ENTROPY.fullmatch(value) is not None


def mask_address(text: str) -> str:
    """``postgresql://me:secret@host`` without its password."""
    return _ADDRESS.sub(_mask_login, text)


def _mask_login(match: re.Match[str]) -> str:
    if match["token"] is not None:
        return f"://{MASK}@"
    return f"://{MASK if len(match['user']) >= 16 else match['user']}:{MASK}@"


class Redactor:
    """Masks secrets; values of secret variables and options are masked wherever they occur. Thread-safe.

    ``environ`` and ``words`` are those of the script: their values with secret names are masked everywhere.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, words: Sequence[str] = ()) -> None:
        self._values: set[str] = set()
        self._pattern: tuple[int, re.Pattern[str] | None] = (0, None)
        for name, value in (environ or {}).items():
            if _is_secret(name, value):
                self._learn(value)
            self._learn(*(match["password"] for match in _ADDRESS.finditer(value) if match["password"]))
        self.words(words)

    def text(self, text: str) -> str:
        """Free text: output, messages, tracebacks, paths."""
        return self._masked(text, is_code=False)

    def value(self, name: str, value: str) -> str:
        """The value of a variable, parameter or tag."""
        if _is_secret(name, value):
            self._learn(value)
            return MASK
        return self.text(value)

    def words(self, words: Sequence[str]) -> list[str]:
        """A command line: ``--api-key X``, ``--api-key=X``, ``API_KEY=X`` and arguments of ``sh -c``."""
        masked: list[str] = []
        programs = [word.rpartition("/")[2] for word in words[:4]]
        login_options = next((_LOGIN_OPTIONS[program] for program in programs if program in _LOGIN_OPTIONS), ())
        before = ""
        for word in words:
            masked.append(self._word(word, before, is_login=before in login_options))
            before = word
        return masked

    def _word(self, word: str, before: str, *, is_login: bool) -> str:
        """One word, given the previous one."""
        is_value = _holds_value(word) and _takes_value(before) and _is_secret(before.lstrip("-"), word)
        if is_value or is_login:
            self._learn(word.partition(":")[2] if is_login and ":" in word else word)
            return MASK
        name, equals, value = word.partition("=")
        # After `sh -c`, a word is a shell script.
        if equals and _PLAIN_NAME.fullmatch(name) and not _SHELL_OPTION.fullmatch(before) and _is_secret(name, value):
            self._learn(value)
            return f"{name}={MASK}"
        return self.text(word)

    def diff(self, diff: str) -> str:
        """A git diff. In source code only literals are masked, to keep expressions; other files are free text."""
        parts = re.split(r"(?m)^(?=diff --git )", diff)
        return "".join(self._masked(part, is_code=_is_code(part)) for part in parts)

    def fields(self, fields: Mapping[str, object]) -> dict[str, object]:
        """An event: every string in it, keys included."""
        return {self.text(str(key)): self._any(value, str(key)) for key, value in fields.items()}

    def _any(self, value: object, name: str, parent: str = "") -> object:
        if isinstance(value, str):
            return self.diff(value) if (parent, name) == ("git", "diff") else self.value(name, value)
        if isinstance(value, Mapping):
            return {
                self.text(str(key)): self._any(part, name if is_secret_name(name) else str(key), name)
                for key, part in value.items()
            }
        if isinstance(value, (list, tuple, set, frozenset)):
            if name == "command":
                return self.words([str(word) for word in value])
            return [self._any(part, name, parent) for part in value]
        return value if value is None or isinstance(value, (int, float)) else self.value(name, str(value))

    def _learn(self, *values: str) -> None:
        for value in values:
            if _is_recognizable(value):
                self._values |= {value, quote(value, safe=""), json.dumps(value)[1:-1]}

    def _known(self) -> re.Pattern[str] | None:
        count, pattern = self._pattern
        if len(self._values) != count:
            values = sorted(self._values.copy(), key=len, reverse=True)
            pattern = re.compile("|".join(map(re.escape, values)))
            self._pattern = (len(values), pattern)
        return pattern

    def _masked(self, text: str, *, is_code: bool) -> str:
        if pattern := self._known():
            text = pattern.sub(MASK, text)
        for literal, shape in _SHAPES:
            if literal in text:
                text = re.sub(shape, MASK, text)
        text = _AUTHORIZATION.sub(_mask_authorization, mask_address(text))
        return "".join(_mask_named(text, is_code=is_code))


def _mask_authorization(match: re.Match[str]) -> str:
    value = match["value"]
    word = value.rstrip(".:)")
    is_prose = word.isalpha() and word.islower() and len(word) < 20 and "uthorization" not in match[1]
    return match[0] if is_prose or value[0] in "{$%<(" else f"{match[1]}{MASK}"


def _mask_named(text: str, *, is_code: bool) -> Iterator[str]:
    """``name = value`` and similar, if the name is secret. In code only quoted values count."""
    done = 0
    for candidate in _CANDIDATE.finditer(text):
        if candidate.start() < done:
            continue
        begin = _begin_of_name(text, candidate.start())
        name = text[begin : candidate.end()]
        in_query = begin > 0 and text[begin - 1] in "?&"
        is_signature = in_query and name.lower().rpartition("-")[2] in _SIGNATURES
        if not (is_signature or is_secret_name(name) or _may_be_key(name)):
            continue
        bare = None if is_code else _BARE if is_secret_name(name) else _RANDOM
        span = _find_value(text, begin, candidate.end(), in_query=in_query, bare=bare)
        if span is None:
            continue
        value = text[span[0] : span[1]]
        is_template = is_code and _TEMPLATE.fullmatch(value)
        if not is_template and (_is_secret(name, value) or (is_signature and value != MASK)):
            yield text[done : span[0]] + MASK
            done = span[1]
    yield text[done:]


def _begin_of_name(text: str, at: int) -> int:
    begin = at
    while begin > 0 and at - begin < 64 and (text[begin - 1].isalnum() or text[begin - 1] in "_-."):
        begin -= 1
    return begin


def _find_value(
    text: str, begin: int, end: int, *, in_query: bool, bare: re.Pattern[str] | None
) -> tuple[int, int] | None:
    """The position of a name's value; None if it has none. ``bare`` None: only quoted values count."""
    gap = _ASSIGNED.match(text, end)
    if gap is None and text[max(0, begin - 2) : begin] in ("('", '("'):
        gap = _PAIRED.match(text, end)
    if gap is None and text[begin] == "-" and not _is_switch(text[begin:end]):
        gap = (_DEFAULT.match(text, end) if bare is None else None) or _OPTION_GAP.match(text, end)
    if gap is None:
        return None
    if in_query and (match := _QUERY_VALUE.match(text, gap.end())):
        return match.span()
    if quoted := _QUOTED.match(text, gap.end()):
        return quoted.span("value")
    if bare is None:
        return None
    # YAML and similar formats: the value is the rest of the line.
    is_line = bare is _BARE and ":" in gap[0] and _LINE_BEGIN.search(text, max(0, begin - 80), begin)
    match = (_REST_OF_LINE if is_line else bare).match(text, gap.end())
    return match.span() if match else None


def _is_code(part: str) -> bool:
    """Whether one file's part of a diff is source code."""
    head = part.partition("\n")[0].rstrip('"')
    return head.startswith("diff --git ") and head.lower().endswith(_CODE_SUFFIXES)


def _is_switch(option: str) -> bool:
    """``--use-auth-token`` takes no value."""
    return option.lstrip("-").partition("-")[0].partition("_")[0] in _SWITCHES


def _takes_value(option: str) -> bool:
    return option.startswith("-") and "=" not in option and not _is_switch(option) and not _SPACE.search(option)


def _holds_value(word: str) -> bool:
    """Whether the word is a value and not the next option; a random token may start with a dash."""
    return not word.startswith("-") or (not word.startswith("--") and len(word) >= 8)


def _is_recognizable(value: str) -> bool:
    """Whether a value can be searched for without masking common words."""
    if len(value) < 8 or value.startswith(("/", "./", "~")) or MASK in value:
        return False
    is_mixed = any(sign.isdigit() for sign in value) or (value.lower() != value and value.upper() != value)
    return len(value) >= 16 or is_mixed


def redact_lines(redactor: Redactor, blocks: Iterable[str]) -> Iterator[str]:
    """Text that is too long to hold: blocks that end at a line's end; a private key that spans two blocks is masked as one."""
    waiting = ""
    for block in blocks:
        text = waiting + block
        begin = text.rfind("-----BEGIN ")
        is_open = begin >= 0 and "-----END " not in text[begin:] and len(text) - begin < 20_000
        waiting = text[begin:] if is_open else ""
        yield redactor.text(text[:begin] if is_open else text)
    yield redactor.text(waiting)
