"""On a private site cached answers are shared only between viewers with equal scope."""

import asyncio
import itertools
from collections.abc import Iterator

import pytest
from clusters.private_site import PEOPLE, VIEWERS, VISIBLE_NAMES, PrivateSite, private_site
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient, Response

from clusterscape.query.redaction.redactor import strip_viewer
from clusterscape.serve.response_cache import SHARED

QUESTIONS = {"/api/v1/tick": "?metrics=gpu_util_ratio"}
NAMING = ("/api/v1/snapshot", "/api/v1/workloads", "/api/v1/violations", "/api/v1/scheduling/queue")
"""Paths whose answers contain names."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateSite]:
    with private_site(tmp_path_factory.mktemp("shared")) as site:
        yield site


def named_in(answer: Response) -> set[str]:
    """Names in an answer; texts in uncompressed Arrow are plain bytes."""
    return {name for name in PEOPLE if name.encode() in answer.content.lower()}


async def ask_all_at_once(app: FastAPI, path: str) -> list[tuple[str, Response]]:
    """All viewers ask several times at the same moment."""
    names = [name for name in VISIBLE_NAMES for _ in range(3)]
    transport = ASGITransport(app=app)
    async with AsyncClient(transport=transport, base_url="http://localhost") as client:
        headers = {"accept-encoding": "identity"}
        requests = [client.get(path + QUESTIONS.get(path, ""), headers=headers | {"x-as": name}) for name in names]
        return list(zip(names, await asyncio.gather(*requests), strict=True))


@pytest.mark.parametrize("path", sorted(SHARED))
async def test_answers_respect_each_viewers_scope_when_all_ask_at_once(site: PrivateSite, path: str) -> None:
    app = site.app(is_private=True)
    for _ in range(2):  # made, then kept
        for name, answer in await ask_all_at_once(app, path):
            assert answer.status_code == 200, answer.text
            visible = set(VISIBLE_NAMES[name]) & set(PEOPLE)
            assert named_in(answer) <= visible, name
            if path in NAMING:
                assert named_in(answer) == visible, name


@pytest.mark.parametrize("path", NAMING)
async def test_answers_differ_when_viewers_may_see_different_people(site: PrivateSite, path: str) -> None:
    answers = dict(await ask_all_at_once(site.app(is_private=True), path))
    for name, other in itertools.combinations(answers, 2):
        if set(VISIBLE_NAMES[name]) & set(PEOPLE) != set(VISIBLE_NAMES[other]) & set(PEOPLE):
            assert answers[name].content != answers[other].content, (name, other)
            assert answers[name].headers["etag"] != answers[other].headers["etag"], (name, other)


async def test_answer_is_sent_in_full_when_the_browser_holds_another_viewers_etag(site: PrivateSite) -> None:
    app = site.app(is_private=True)
    async with AsyncClient(transport=ASGITransport(app=app), base_url="http://localhost") as client:
        for path in NAMING:
            admin_answer = await client.get(path, headers={"x-as": "admin"})
            tag = {"if-none-match": admin_answer.headers["etag"]}
            again = await client.get(path, headers={"x-as": "admin"} | tag)
            other = await client.get(path, headers={"x-as": "viewer"} | tag)
            assert (again.status_code, other.status_code) == (304, 200), path


def test_only_viewers_with_equal_rights_share_answers_when_the_site_is_private() -> None:
    same = {
        frozenset({name, other})
        for name, other in itertools.combinations(VIEWERS, 2)
        if strip_viewer(VIEWERS[name], is_private=True) == strip_viewer(VIEWERS[other], is_private=True)
    }
    # Two viewers who may see nobody, and one person under two names of this file.
    assert same == {frozenset({"viewer", "nobody"}), frozenset({"researcher", VIEWERS["researcher"].login})}


async def test_tick_is_computed_once_per_role_when_it_names_nobody(site: PrivateSite) -> None:
    app = site.app(is_private=True)
    answers = await ask_all_at_once(app, "/api/v1/tick")
    assert len({answer.content for _, answer in answers}) == 1
    async with AsyncClient(transport=ASGITransport(app=app), base_url="http://localhost") as client:
        text = (await client.get("/metrics", headers={"x-as": "admin"})).text
    metric = next(
        line for line in text.splitlines() if line.startswith('clusterscape_shared_answers_total{how="made"}')
    )
    assert float(metric.split()[-1]) == len({VIEWERS[name].role for name, _ in answers})
