"""Servers that others run: nothing is started, stopped or leased."""

import asyncio
import sys
from collections.abc import AsyncIterator

import httpx
import pytest
from serving_place import QUESTION, Place
from supervised_server import PROGRAM, free_port

from flows.attached_servers import attached_servers
from flows.model_servers import model_server

pytestmark = pytest.mark.services


@pytest.fixture
async def two() -> AsyncIterator[list[tuple[str, asyncio.subprocess.Process]]]:
    """Two servers: their addresses and processes."""
    running = []
    for _ in range(2):
        port = free_port()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-S", str(PROGRAM), "--host", "127.0.0.1", "--port", str(port), "--model", "theirs",
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        running.append((f"http://127.0.0.1:{port}", process))
    async with httpx.AsyncClient(trust_env=False) as client, asyncio.timeout(30):
        for url, _ in running:
            while not await _well(client, url):  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.05)
    yield running
    for _, process in running:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _well(client: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await client.get(f"{url}/health")).is_success
    except httpx.HTTPError:
        return False


async def test_two_servers_share_the_work_and_one_may_die(place: Place, two):
    settings = place.also(base_urls=tuple(f"{url}/v1" for url, _ in two))
    async with model_server(settings=settings) as server:
        assert server.attached

        async def both_are_well() -> bool:
            return all(each.healthy for each in server.pool.states())

        await place.until(both_are_well)
        answers = await asyncio.gather(*(server.chat.ask(QUESTION) for _ in range(8)))
        assert {each.served_by for each in answers} == {url for url, _ in two}
        two[0][1].kill()
        await two[0][1].wait()
        answers = await asyncio.gather(*(server.chat.ask(QUESTION) for _ in range(8)))
        assert {each.served_by for each in answers} == {two[1][0]}
    assert two[1][1].returncode is None, "the other one is left running"
    assert await place.registry.servers(live=False) == []
    assert not place.supervisors()


async def test_they_are_seen_with_their_load(place: Place, two):
    two[1][1].kill()
    await two[1][1].wait()
    well, gone = await attached_servers(place.also(base_urls=tuple(url for url, _ in two)))
    assert (well.state, well.models) == ("attached", ("theirs",))
    assert well.metrics["requests_running"] == 0
    assert (gone.state, gone.models, gone.metrics) == ("unreachable", (), {})
    assert gone.error
