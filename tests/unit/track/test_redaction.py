"""Texts that are masked as secrets, and texts that must stay so that a run can be repeated."""

import json
import string
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tracking.command import DEADLINE_S

from clusterscape.model.run_frames import FrameKind, iter_frames
from clusterscape.track.redaction import MASK, Redactor, is_secret_name, redact_lines
from clusterscape.track.spool import Spool

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3OTQ4MDAwMDAsInN1biI6Im1lIn0.c2lnbmF0dXJlLW9mLXRlc3Q"
PEM_BODY = "MIIEpAIBAAKCAQEA" + "k3Jx9Qz7" * 12
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_BODY}\n{PEM_BODY}\nAb3=\n-----END RSA PRIVATE KEY-----"
# Assembled here, so that scanners of repositories do not take them for real secrets.
SHAPES = {
    "jwt": JWT,
    "aws": "AKIA" + "Q3EGZJ7KX5W2MNP4",
    "aws session": "ASIA" + "Q3EGZJ7KX5W2MNP4",
    "github": "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "github oauth": "gho_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "github fine-grained": "github_pat_" + "11ABCDEFG0_abcdefghijklmnopqrstuvwxyz0123456789",
    "gitlab": "glpat-" + "AbC1_dEf2-GhI3jKl4mNo",
    "hugging face": "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh",
    "openai": "sk-" + "proj-AbCdEf123456GhIjKl7890MnOpQr",
    "anthropic": "sk-" + "ant-api03-AbCdEf123456-GhIjKl7890",
    "slack": "xoxb-" + "123456789012-abcdefABCDEF",
    "google": "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "nvidia": "nvapi-" + "AbCdEf123456GhIjKl7890MnOpQr",
    "own": "cst_" + "AbCdEf123456GhIjKl7890MnOpQrStUvWx",
    "private key": PEM_BODY,
}


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("text", ["{}", "see {} there", "run_{}", "{},", '"{}"', "x={}&y=2", "(secret: {})"])
def test_secret_is_masked_when_only_its_format_identifies_it(kind: str, text: str) -> None:
    secret = PEM if kind == "private key" else SHAPES[kind]
    masked = Redactor().text(text.format(secret))
    assert SHAPES[kind] not in masked
    assert MASK in masked


SECRET = "Tr0ub4dor-x9"
TEXTS = [
    "password=Tr0ub4dor-x9",
    "password = 'Tr0ub4dor-x9'",
    "DB_PASSWORD=Tr0ub4dor-x9",
    "export WANDB_API_KEY=Tr0ub4dor-x9",
    "WANDB_API_KEY=Tr0ub4dor-x9 python train.py --lr 0.1",
    "python train.py --api-key Tr0ub4dor-x9 --lr 0.1",
    "python train.py --api-key=Tr0ub4dor-x9",
    "python train.py --hf_token 'Tr0ub4dor-x9'",
    "Command '['curl', '--api-key', 'Tr0ub4dor-x9']' returned non-zero exit status 22.",
    'curl -H "Authorization: Bearer Tr0ub4dor-x9" https://x',
    "curl -H 'X-Api-Key: Tr0ub4dor-x9' https://x",
    "Authorization: Basic Tr0ub4dor-x9",
    '{"headers": {"Authorization": "Token Tr0ub4dor-x9"}}',
    '{"api_key": "Tr0ub4dor-x9", "lr": 0.1}',
    '{\\"api_key\\": \\"Tr0ub4dor-x9\\"}',
    "{'client_secret': 'Tr0ub4dor-x9'}",
    "api_key: Tr0ub4dor-x9",
    "  passphrase: two words Tr0ub4dor-x9",
    "postgresql://me:Tr0ub4dor-x9@host/db",
    "postgresql://me:p@ss/Tr0ub4dor-x9@host:5432/db",
    "https://:Tr0ub4dor-x9@host/",
    "https://oauth2tokenTr0ub4dor-x9@git.example.org/x.git",
    "https://bucket.example.org/x?X-Amz-Signature=Tr0ub4dor-x9&part=2",
    "https://store.example.org/x?sv=2024&sig=Tr0ub4dor-x9",
    "GET /hook?access_token=Tr0ub4dor-x9&step=3",
    "ValueError: login failed (token=Tr0ub4dor-x9)",
    "env: --env=WANDB_API_KEY=Tr0ub4dor-x9",
    "secretKey => Tr0ub4dor-x9",
    "[('api_key', 'Tr0ub4dor-x9')]",
    "PGPASSWORD=Tr0ub4dor-x9",
    "AWS_SECRET_ACCESS_KEY: Tr0ub4dor-x9",
]


@pytest.mark.parametrize("text", TEXTS)
def test_secret_is_masked_when_the_text_names_it(text: str) -> None:
    masked = Redactor().text(text)
    assert SECRET not in masked
    assert MASK in masked
    assert Redactor().text(masked) == masked


HARMLESS = [
    "3f786850e387550fdab836ed7e6dc881de23001b",
    "commit: 3f786850e387550fdab836ed7e6dc881de23001b",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "checksum=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "cache_key=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "20261115-130501-3f9a1c",
    "run:20261115-130501-3f9a1c/node:3",
    "GPU-5c0ffee0-0000-4000-8000-000000000001",
    "meta-llama/Llama-3.1-8B-Instruct",
    "hf_internal_testing/tiny_random_bert",
    "--max-tokens 4096 --tokenizer gpt2 --num-tokens=12",
    "--pad-token <pad> --eos_token_id 2 --mask-token [MASK]",
    "tokens: 4096, tokens_per_second=812.5",
    "pad_token='<pad>'",
    "key=lambda row: row[0]",
    "sort_key=name",
    "forward_pass: 3",
    "--token-file /run/secrets/hub",
    "--use-auth-token train.py",
    "python train.py --token $HF_TOKEN",
    "password: null",
    "torch==2.13.0+cu128",
    "https://github.com/org/repo.git",
    "ssh://git@github.com/org/repo.git",
    "git@github.com:org/repo.git",
    "http://host:8080/path@v2",
    "http://127.0.0.1:9400/metrics",
    "s3://bucket/keys/part-0001.parquet",
    "risk-adjusted-return-model-2024-version-2",
    "sk-learn-contrib-with-long-names",
    "Bearer authentication is required",
    "SLURM_JOB_ID=4242",
    "TOKENIZERS_PARALLELISM=false",
    "PWD=/home/me/code",
    "author: me, authority=x",
    "std::key::value",
    "COLUMNS = ('step', 'pass', 'phase')",
    'UNTIL_KEY = "Until"',
    '"kind": "Credential", "spec"',
    '"""Bearer tokens: fixed, or read from a file."""',
]


@pytest.mark.parametrize("text", HARMLESS)
def test_text_stays_when_it_only_looks_like_a_secret(text: str) -> None:
    assert Redactor().text(text) == text
    assert Redactor().words(text.split()) == text.split()


@pytest.mark.parametrize(
    "name",
    [
        *("SLURM_JWT", "WANDB_API_KEY", "HF_TOKEN", "hf_token", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        *("AWS_SESSION_TOKEN", "OPENAI_KEY", "PGPASSWORD", "MYSQL_PWD", "dbPassword", "apiKey", "clientSecret"),
        *("wandb.api_key", "KUBE_TOKEN", "SENTRY_DSN", "GITHUB_PAT", "AZURE_STORAGE_KEY", "password2", "SSHPASS"),
        *("db_pass", "auth", "Authorization", "COOKIE", "token", "X-Api-Key", "HUGGING_FACE_HUB_TOKEN"),
    ],
)
def test_name_is_secret_when_it_names_a_login(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("PWD", "OLDPWD", "tokenizer", "max_tokens", "pad_token", "token_dim", "TOKENIZERS_PARALLELISM", "key"),
        *("num_keys", "key_size", "cache_key", "lr", "author", "keyboard", "passes", "compass", "monkey", "path"),
        *("token_file", "PASSWORD_FILE", "api_key_env", "n_heads", "SLURM_JOB_ID", "secret_path", "bypass"),
    ],
)
def test_name_is_not_secret_when_it_only_sounds_like_one(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("words", "masked"),
    [
        (["train.py", "--api-key", SECRET, "--lr", "0.1"], ["train.py", "--api-key", MASK, "--lr", "0.1"]),
        (["train.py", f"--api-key={SECRET}"], ["train.py", f"--api-key={MASK}"]),
        (["train.py", "--api-key=a b=c'd"], ["train.py", f"--api-key={MASK}"]),
        (["train.py", f"+wandb.api_key={SECRET}"], ["train.py", f"+wandb.api_key={MASK}"]),
        (["env", f"HF_TOKEN={SECRET}", "python", "x.py"], ["env", f"HF_TOKEN={MASK}", "python", "x.py"]),
        (["docker", "run", "-e", f"HF_TOKEN={SECRET}"], ["docker", "run", "-e", f"HF_TOKEN={MASK}"]),
        (["sshpass", "-p", SECRET, "ssh", "n1"], ["sshpass", "-p", MASK, "ssh", "n1"]),
        (["curl", "-u", f"me:{SECRET}", "x"], ["curl", "-u", MASK, "x"]),
        (["train.py", "-p", "8"], ["train.py", "-p", "8"]),
        (["docker", "login", "-p", SECRET, "x"], ["docker", "login", "-p", MASK, "x"]),
        (["docker", "run", "-p", "8080:80", "x"], ["docker", "run", "-p", "8080:80", "x"]),
        (["sh", "-c", f"HF_TOKEN={SECRET} python x.py"], ["sh", "-c", f"HF_TOKEN={MASK} python x.py"]),
        (["env", "PASSWORD=two words", "x"], ["env", f"PASSWORD={MASK}", "x"]),
        (["train.py", "--password", "-Tr0ub4dor"], ["train.py", "--password", MASK]),
        (["train.py", "--token", "--lr", "0.1"], ["train.py", "--token", "--lr", "0.1"]),
        (["train.py", "--key", "9f86d081884c7d659a2feaa0c55ad015"], ["train.py", "--key", MASK]),
        (["train.py", "--password", "1234"], ["train.py", "--password", MASK]),
    ],
)
def test_command_keeps_everything_but_the_secret_when_it_is_masked(words: list[str], masked: list[str]) -> None:
    assert Redactor().words(words) == masked
    assert Redactor().words(masked) == masked


def test_value_is_masked_everywhere_when_a_secret_variable_or_option_holds_it() -> None:
    redactor = Redactor(
        {"MY_TOKEN": "Q9-plain-words", "DATABASE": "db://me:Hun-ter22@h"}, ["x", "--api-key", "Zz77-abc"]
    )
    text = redactor.text("got Q9-plain-words, Hun-ter22 and Zz77-abc back")
    assert text == f"got {MASK}, {MASK} and {MASK} back"
    redactor.value("hf_token", "Later-99-given")
    assert redactor.text("Later-99-given") == MASK


def test_common_words_stay_when_a_secret_variable_holds_one() -> None:
    redactor = Redactor({"PGPASSWORD": "postgres", "A_TOKEN": "none", "B_SECRET": "/run/secrets/b"})
    assert redactor.text("postgres none /run/secrets/b") == "postgres none /run/secrets/b"


DIFF = f'''\
diff --git a/train.py b/train.py
index 3f78685..9f86d08 100644
--- a/train.py
+++ b/train.py
@@ -1,4 +1,9 @@
 import os
-token = args.token
+token = load_token(path)
+client = Client(token=token, password=getpass())
+os.environ["WANDB_API_KEY"] = "{SECRET}"
+parser.add_argument("--api-key", type=str, default="{SECRET}")
+headers = {{"Authorization": f"Bearer {{token}}"}}
+api_key: str = '{SECRET}'
+URL = "postgresql://me:{SECRET}@host/db"
diff --git a/.env b/.env
--- a/.env
+++ b/.env
@@ -0,0 +1,2 @@
+HF_TOKEN={SECRET}
+LR=0.1
diff --git a/config.yaml b/config.yaml
@@ -1,2 +1,2 @@
-  password: {SECRET} and more
+  password: {SECRET}
   commit: 3f786850e387550fdab836ed7e6dc881de23001b
'''


def test_diff_loses_literals_and_keeps_code_when_it_is_masked() -> None:
    masked = Redactor().diff(DIFF)
    assert SECRET not in masked
    assert Redactor().diff(masked) == masked
    for line in (
        "-token = args.token",
        "+token = load_token(path)",
        "+LR=0.1",
        ' headers = {"Authorization": f"Bearer {token}"}',
    ):
        assert line.lstrip() in masked
    assert "+client = Client(token=token, password=getpass())" in masked
    assert "commit: 3f786850e387550fdab836ed7e6dc881de23001b" in masked
    assert masked.count("\n") == DIFF.count("\n")


def test_private_key_is_masked_when_it_spans_two_blocks() -> None:
    begin, end = PEM[:120], PEM[120:]
    masked = "".join(redact_lines(Redactor(), [f"start\n{begin}", f"{end}\nstop\n", "last\n"]))
    assert PEM_BODY[:20] not in masked
    assert masked.startswith("start\n")
    assert masked.endswith("\nstop\nlast\n")


def test_masking_ends_before_the_deadline_when_the_text_is_made_to_be_slow() -> None:
    """A pattern that reads the rest of the text at every match takes ten times the deadline for one of these."""
    pieces = [
        "a://b:",
        "key=",
        "-----BEGIN RSA PRIVATE KEY-----",
        "authorization: a ",
        "token'",
        "eyJaaaaaaaa.",
        "sk-a",
    ]
    program = f"from {Redactor.__module__} import Redactor\nfor piece in {pieces}: Redactor().diff(piece * 100_000)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=DEADLINE_S)


class Hidden(NamedTuple):
    name: str
    secret: str


ALPHABET = string.ascii_letters + string.digits
NAMES = st.sampled_from(["hf_token", "API_KEY", "db-password", "client_secret", "wandb.api_key", "SLURM_JWT"])
RANDOM = st.text(ALPHABET + "-_+/!#%:.@", min_size=12, max_size=40).filter(
    lambda text: any(sign.isdigit() for sign in text[1:]) and any(sign.isupper() for sign in text) and text[0].isalnum()
)
SHAPED = st.builds(
    lambda prefix, rest: prefix + "A1" + rest,
    st.sampled_from(["ghp_", "glpat-", "hf_", "sk-", "xoxb-", "cst_", "nvapi-"]),
    st.text(ALPHABET, min_size=30, max_size=40),
)
HIDDEN = st.builds(Hidden, NAMES, st.one_of(RANDOM, SHAPED))
CHANNELS: tuple[Callable[[str, str], tuple[str, dict[str, object]]], ...] = (
    lambda name, secret: ("params", {"params": {name: secret}}),
    lambda name, secret: ("tags", {"tags": {"note": f"{name}={secret}"}}),
    lambda name, secret: ("run", {"command": ["python", "x.py", f"--{name}", secret], "name": "x"}),
    lambda name, secret: ("run", {"command": ["sh", "-c", f"A={name} python x.py --{name}='{secret}'"]}),
    lambda name, secret: ("environment", {"environ": {name: secret}}),
    lambda _, secret: ("environment", {"git": {"remote": f"https://me:{quote(secret, safe='')}@git.example.org/x"}}),
    lambda name, secret: ("environment", {"git": {"diff": f"diff --git a/a.py b/a.py\n+{name} = '{secret}'\n"}}),
    lambda name, secret: ("environment", {"git": {"diff": f"diff --git a/.env b/.env\n+{name}={secret}\n"}}),
    lambda name, secret: ("exception", {"text": json.dumps({"message": f"Client({name}='{secret}')"})}),
    lambda name, secret: ("end", {"cause": f"ValueError: {name}: {secret}"}),
    lambda name, secret: ("mark", {"kind": "phase", "name": f"{name}={secret}"}),
)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(hidden=HIDDEN, channel=st.integers(0, len(CHANNELS) - 1))
def test_no_secret_is_in_any_frame_when_an_event_was_written(tmp_path: Path, hidden: Hidden, channel: int) -> None:
    event, fields = CHANNELS[channel](hidden.name, hidden.secret)
    text = written(tmp_path / "one.spool", event, fields)
    assert hidden.secret not in text
    assert quote(hidden.secret, safe="") not in text


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(hidden=st.builds(Hidden, NAMES, SHAPED))
def test_no_secret_is_in_any_frame_when_only_its_format_identifies_it(tmp_path: Path, hidden: Hidden) -> None:
    fields = {"params": {"note": hidden.secret}, "cwd": f"/home/{hidden.secret}/x", "untracked": [hidden.secret]}
    text = written(tmp_path / "one.spool", "run", fields | {hidden.secret: 1})
    assert hidden.secret not in text
    spool = Spool(tmp_path / "two.spool")
    spool.add(1, None, {f"loss/{hidden.secret}": 1.0})
    spool.close()
    assert hidden.secret not in read_events(tmp_path / "two.spool")


@settings(deadline=None, max_examples=300)
@given(st.text(ALPHABET + " =:'\"\n\\-_/@,()[]{}.&?", max_size=80).map(lambda text: text.replace("a", "token")))
def test_masking_twice_changes_nothing_when_it_was_masked(text: str) -> None:
    masked = Redactor().text(text)
    assert Redactor().text(masked) == masked


def written(path: Path, event: str, fields: dict[str, object]) -> str:
    path.unlink(missing_ok=True)
    spool = Spool(path)
    spool.event(event, **fields)
    spool.close()
    return read_events(path)


def read_events(path: Path) -> str:
    frames = list(iter_frames(path.read_bytes()))
    path.unlink()
    assert frames
    events = [json.loads(frame.payload) for frame in frames if frame.kind == FrameKind.EVENT]
    return "\n".join(strings_of(events))


def strings_of(value: object) -> list[str]:
    """Every string, decoded: an escape must not hide a secret from the comparison."""
    if isinstance(value, dict):
        return [part for pair in value.items() for item in pair for part in strings_of(item)]
    if isinstance(value, list):
        return [part for item in value for part in strings_of(item)]
    return [str(value)]
