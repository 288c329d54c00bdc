"""On a private site answers are kept and shared, and never with anybody who may see something else."""

import asyncio
import itertools
from collections.abc import Iterator

import pytest
from clusters.private_site import KNOWN, PEOPLE, VIEWERS, PrivateSite, private_site
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient, Response

from clusterscape.query.redaction.viewer_scope import strip_viewer
from clusterscape.serve.response_cache import SHARED

QUESTIONS = {"/api/v1/tick": "?metrics=gpu_util_ratio"}
NAMING = ("/api/v1/snapshot", "/api/v1/workloads", "/api/v1/violations", "/api/v1/scheduling/queue")
"""Answers that name whom the viewer knows."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateSite]:
    with private_site(tmp_path_factory.mktemp("shared")) as site:
        yield site


def named_in(answer: Response) -> set[str]:
    """Not compressed, texts stand in Arrow as they are."""
    return {name for name in PEOPLE if name.encode() in answer.content.lower()}


async def ask_all_at_once(app: FastAPI, path: str) -> list[tuple[str, Response]]:
    """Everybody, several times over, all in the same moment."""
    names = [name for name in KNOWN for _ in range(3)]
    transport = ASGITransport(app=app)
    async with AsyncClient(transport=transport, base_url="http://localhost") as client:
        headers = {"accept-encoding": "identity"}
        asked = [client.get(path + QUESTIONS.get(path, ""), headers=headers | {"x-as": name}) for name in names]
        return list(zip(names, await asyncio.gather(*asked), strict=True))


@pytest.mark.parametrize("path", sorted(SHARED))
async def test_viewers_are_answered_as_they_may_see_when_all_ask_at_once(site: PrivateSite, path: str) -> None:
    app = site.app(is_private=True)
    for _ in range(2):  # made, then kept
        for name, answer in await ask_all_at_once(app, path):
            assert answer.status_code == 200, answer.text
            known = set(KNOWN[name]) & set(PEOPLE)
            assert named_in(answer) <= known, name
            if path in NAMING:
                assert named_in(answer) == known, name


@pytest.mark.parametrize("path", NAMING)
async def test_answers_differ_when_viewers_may_see_different_people(site: PrivateSite, path: str) -> None:
    answers = dict(await ask_all_at_once(site.app(is_private=True), path))
    for one, other in itertools.combinations(answers, 2):
        if set(KNOWN[one]) & set(PEOPLE) != set(KNOWN[other]) & set(PEOPLE):
            assert answers[one].content != answers[other].content, (one, other)
            assert answers[one].headers["etag"] != answers[other].headers["etag"], (one, other)


async def test_answer_is_sent_whole_when_the_browser_holds_what_another_viewer_was_sent(site: PrivateSite) -> None:
    app = site.app(is_private=True)
    async with AsyncClient(transport=ASGITransport(app=app), base_url="http://localhost") as client:
        for path in NAMING:
            seen_by_all = await client.get(path, headers={"x-as": "admin"})
            tag = {"if-none-match": seen_by_all.headers["etag"]}
            again = await client.get(path, headers={"x-as": "admin"} | tag)
            other = await client.get(path, headers={"x-as": "viewer"} | tag)
            assert (again.status_code, other.status_code) == (304, 200), path


def test_only_viewers_of_the_same_rights_are_taken_for_the_same_when_the_site_is_private() -> None:
    same = {
        frozenset({one, other})
        for one, other in itertools.combinations(VIEWERS, 2)
        if strip_viewer(VIEWERS[one], is_private=True) == strip_viewer(VIEWERS[other], is_private=True)
    }
    # Two who know nobody; and one person under two names of this file.
    assert same == {frozenset({"viewer", "nobody"}), frozenset({"researcher", VIEWERS["researcher"].login})}


async def test_tick_is_made_once_for_all_of_a_role_when_it_names_nobody(site: PrivateSite) -> None:
    app = site.app(is_private=True)
    answers = await ask_all_at_once(app, "/api/v1/tick")
    assert len({answer.content for _, answer in answers}) == 1
    async with AsyncClient(transport=ASGITransport(app=app), base_url="http://localhost") as client:
        text = (await client.get("/metrics", headers={"x-as": "admin"})).text
    made = next(line for line in text.splitlines() if line.startswith('clusterscape_shared_answers_total{how="made"}'))
    assert float(made.split()[-1]) == len({VIEWERS[name].role for name, _ in answers})
