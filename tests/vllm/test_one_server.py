"""One server of real vLLM that flows share: started once, asked, overloaded, killed, frozen, and there again.

The first test starts it; each of the others would, if it were not there.
"""

import asyncio
import io
import json
import sys
from dataclasses import replace

import httpx
import pytest
from PIL import Image
from vllm_host import row_in, until

from docmill.chat import ChatRequest
from docmill.failures import ServerOverloaded
from docmill.launching import Endpoint
from docmill.model_failures import BadRequest, ServedNameUnknown
from docmill.model_servers import Restart, ServerRecord, ServerState
from docmill.ports import PageImage
from docmill.synthesis import make_document
from flows.model_servers import model_server
from serving.chat.client import ChatClient
from serving.chat.pool import EndpointPool
from serving.chat.status_errors import error_of_status
from serving.supervision.metrics import scrape

pytestmark = pytest.mark.vllm

FLOW = """
import asyncio, sys
from docmill.chat import ChatRequest
from flows.model_servers import model_server

async def main():
    async with model_server("tiny", holder=sys.argv[1]) as server:
        answer = await server.chat.ask(ChatRequest(instruction="What is on the page?", max_tokens=4))
        print(answer.served_by)

asyncio.run(main())
"""
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "date": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
        "total": {"type": "integer", "minimum": 0, "maximum": 9999},
        "signed": {"type": "boolean"},
    },
    "required": ["name", "date", "total", "signed"],
    "additionalProperties": False,
}
QUESTION = ChatRequest(instruction="Read this form and answer as JSON.", max_tokens=8)


def form() -> PageImage:
    """The first page of a made application form."""
    picture = make_document("application_form", 7, dpi=60).pages[0].convert("RGB")
    assert isinstance(picture, Image.Image)
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=80)
    return PageImage(data.getvalue(), "image/jpeg", picture.width, picture.height)


async def test_three_processes_that_need_a_model_start_one_server(host, registry):
    flows = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", FLOW, f"flow {number}", stdout=asyncio.subprocess.PIPE
        )
        for number in range(3)
    ]
    said = [out.decode().split() for out, _ in await asyncio.gather(*(flow.communicate() for flow in flows))]
    assert [flow.returncode for flow in flows] == [0, 0, 0]
    (row,) = await registry.servers(profile="tiny", live=False)
    assert said == [[row.base_url]] * 3
    assert (row.state, row.leases, row.restarts) == (ServerState.READY, 0, 0)


async def test_a_page_is_read_as_its_schema_says(host, registry, server, row):
    answer = await server.chat.ask(ChatRequest(instruction="Read.", images=(form(),), schema=SCHEMA, max_tokens=200))
    read = json.loads(answer.text)
    assert answer.finish_reason == "stop" and answer.sends == 1
    assert list(read) == ["name", "date", "total", "signed"]
    assert len(read["name"]) <= 12 and len(read["date"]) == 10
    assert 0 <= read["total"] <= 9999 and isinstance(read["signed"], bool)
    assert " " not in answer.text.replace(read["name"], ""), "no blanks between the tokens of JSON"
    assert answer.prompt_tokens > 100, "the picture's tokens are among them"
    assert answer.completion_tokens > 10


async def test_the_row_says_what_runs_and_how_it_gets_on(host, registry, server, row):
    await server.chat.ask(QUESTION)
    now = await scrape(Endpoint(row.base_url))
    assert now.requests_succeeded_total >= 1 and now.generation_tokens_total >= 8

    async def written() -> ServerRecord | None:
        found = await registry.server(row.id)
        return found if found.metrics.get("generation_tokens_total", 0) >= now.generation_tokens_total else None

    told = await until(written)
    assert told.metrics["requests_running"] == told.metrics["requests_waiting"] == 0
    assert (told.vllm_version, told.max_model_len, told.tensor_parallel_size) == ("0.32.0", 2048, 1)
    assert told.kv_cache_tokens > 100_000
    assert told.leases == 1
    (listed,) = [each for each in host.told("servers")["servers"] if each["profile"] == "tiny"]
    assert (listed["id"], listed["state"], listed["base_url"]) == (str(row.id), "ready", row.base_url)


async def test_what_vllm_says_of_a_bad_request_is_kept(server):
    with pytest.raises(BadRequest) as refused:
        await server.chat.ask(ChatRequest(instruction="What is on the page?", max_tokens=9000))
    assert refused.value.detail["status"] == 400
    assert "max_model_len=2048" in refused.value.detail["body"]


async def test_a_name_that_is_not_served_is_named_with_those_that_are(row):
    async with EndpointPool([Endpoint(row.base_url, "nobody")]) as pool, ChatClient(pool) as chat:
        with pytest.raises(ServedNameUnknown, match="does not serve 'nobody', but tiny"):
            await chat.ask(QUESTION)
    # the pool asks for the names first; this is what the server itself would say
    body = {"model": "nobody", "messages": [{"role": "user", "content": "Hello"}]}
    async with httpx.AsyncClient(trust_env=False) as client:
        said = await client.post(f"{row.base_url}/v1/chat/completions", json=body)
    unknown = error_of_status(said.status_code, said.text, server=row.base_url, model="nobody")
    assert isinstance(unknown, ServedNameUnknown) and "Valid aliases: tiny" in unknown.detail["body"]


async def test_attached_it_is_asked_and_left_alone(host, registry, row):
    async with model_server(settings=host.also(base_urls=(f"{row.base_url}/v1",))) as attached:
        answer = await attached.chat.ask(QUESTION)
        assert attached.attached
        assert answer.model == "tiny"
        assert (await registry.server(row.id)).leases == 1, "the fixture's alone"


async def test_what_it_has_no_room_for_is_refused_at_once(host, registry, server, row):
    async with EndpointPool([Endpoint(row.base_url, "tiny")]) as pool, ChatClient(pool, patience_seconds=0) as hasty:
        await asyncio.gather(hasty.ask(QUESTION), server.chat.ask(QUESTION))  # both are connected
        async with host.frozen(row.id):
            # four are worked on and two wait; a probe of the supervisor's may be one of them
            waiting = [asyncio.create_task(server.chat.ask(QUESTION)) for _ in range(6)]

            async def refused() -> bool:
                try:
                    async with asyncio.timeout(1):
                        await hasty.ask(QUESTION)
                except ServerOverloaded as error:
                    return error.detail.get("status") == 503
                except TimeoutError:
                    return False
                raise AssertionError("a frozen engine has answered")

            async def one_of_many_refused() -> bool:
                # one more than there is room for: whichever of the waiting are between two tries, one is too many
                return any(await asyncio.gather(*(refused() for _ in range(7))))

            await until(one_of_many_refused)
        answers = await asyncio.gather(*waiting)
    assert all(answer.completion_tokens == 8 for answer in answers), "those that waited were answered in the end"
    assert (await scrape(Endpoint(row.base_url))).admission_rejections_total >= 1


async def test_a_request_outlives_the_engine_that_is_killed_under_it(host, registry, server, row):
    page = await host.page()
    engine = host.part(row.id, "EngineCore")
    async with host.frozen(row.id):
        asked = asyncio.create_task(server.chat.ask(replace(QUESTION, page_id=page)))
        await host.requests_noted(row.id)
        engine.kill()
    answer = await asked
    assert answer.completion_tokens == 8 and answer.sends >= 2
    now = await row_in(registry, row.id, ServerState.READY, restarts=row.restarts + 1)
    restart = (await registry.restarts(row.id))[0]
    assert restart.page_ids == (page,) and restart.requests >= 1
    assert restart.code == "engine_died" and "EngineDeadError" in restart.log_tail
    assert now.pid != row.pid
    assert await registry.crashes_of(page) == 1


async def test_an_engine_that_hangs_is_found_and_replaced(host, registry, server, row):
    frozen_engine = host.part(row.id, "EngineCore")
    frozen_engine.suspend()
    answer = await server.chat.ask(QUESTION)
    assert answer.completion_tokens == 8 and answer.sends >= 2
    restart: Restart = (await registry.restarts(row.id))[0]
    assert restart.code == "hang" and "no token was generated and no probe answered for 20 s" in restart.message
    assert not frozen_engine.is_running()
    log = host.log_of(row)
    stacks = log[log.index(f"stacks of process {frozen_engine.pid} (VLLM::EngineCore)") :]
    assert "Fatal Python error: Aborted" in stacks and "run_busy_loop" in stacks
