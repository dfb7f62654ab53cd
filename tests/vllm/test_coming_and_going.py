"""How real vLLM goes away: idle, drained, left behind; and comes back. The command line starts it, as people do."""

import asyncio
import os
import signal
import sys
from uuid import UUID

import psutil
import pytest
from vllm_host import kill, row_in, title, until

from docmill.chat import ChatRequest
from docmill.model_servers import ServerState
from flows.model_servers import model_server

pytestmark = pytest.mark.vllm

QUESTION = ChatRequest(instruction="What is on the page?", max_tokens=4)
LONG_QUESTION = ChatRequest(instruction="What is on the page?", max_tokens=1900, extra={"ignore_eos": True})


async def test_idle_it_stops_and_the_next_who_needs_it_starts_it_again(host, registry):
    settings = host.also(idle_sleep_seconds=1.0, idle_stop_seconds=3.0)
    states = []
    async with model_server("resting", settings=settings) as server:
        assert (await server.chat.ask(QUESTION)).completion_tokens == 4
        (first,) = await registry.servers(profile="resting")

    async def stopped() -> bool:
        now = await registry.server(first.id)
        states.append(now.state)
        return now.state is ServerState.STOPPED

    await until(stopped)
    assert ServerState.SLEEPING not in states, "vLLM on a CPU cannot sleep, and is not asked to"
    ended = await registry.server(first.id)
    assert (ended.error_code, ended.restarts, ended.leases) == (None, 0, 0)
    await host.nothing_left(first.id)

    async with model_server("resting", settings=host.settings) as server:
        assert (await server.chat.ask(QUESTION)).completion_tokens == 4
        (second,) = await registry.servers(profile="resting")
        assert second.id != first.id
        # and what a supervisor that was killed leaves behind: nothing
        running = {title(each) for each in host.processes(second.id)}
        assert {"VLLM::EngineCore", "VLLM::Worker"} <= running
        supervisor = host.supervisor_of(second.id)
    kill(supervisor)
    await host.nothing_left(second.id)
    assert (await registry.server(second.id)).state is ServerState.READY, "its row does not know yet"
    stopped_by_hand = host.docmill("stop", "resting")
    assert stopped_by_hand.returncode == 0, stopped_by_hand.stdout
    assert (await registry.server(second.id)).state is ServerState.STOPPED


async def test_a_divided_model_answers_and_its_drain_leaves_no_worker(host, registry, monkeypatch):
    cores = [*sorted(os.sched_getaffinity(0)), *sorted(os.sched_getaffinity(0))]
    # without it vLLM wants a NUMA node for each worker
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", f"{cores[0]}|{cores[1]}")
    serve = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "console", "serve", "divided", "--tensor-parallel-size", "2",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip

    async def made() -> UUID | None:
        return next((each.id for each in await registry.servers(profile="divided")), None)

    server_id = await until(made)
    row = await row_in(registry, server_id, ServerState.READY)
    assert row.tensor_parallel_size == 2
    processes = host.processes(server_id)
    assert {"VLLM::EngineCore", "VLLM::Worker_TP0", "VLLM::Worker_TP1"} <= {title(each) for each in processes}
    async with model_server("divided", settings=host.settings) as server:
        engine = host.part(server_id, "EngineCore")
        pieces: list[str] = []

        def freeze(piece: str) -> bool:
            if not pieces:
                engine.suspend()
            pieces.append(piece)
            return False

        async def answers() -> bool:
            assert not asked.done(), asked
            return bool(pieces)

        # frozen in the middle of its answer, so that it is not done before the drain has begun
        asked = asyncio.create_task(server.chat.ask(LONG_QUESTION, watch=lambda: freeze))
        try:
            await until(answers)
            serve.send_signal(signal.SIGTERM)
            await row_in(registry, server_id, ServerState.DRAINING)
        finally:
            engine.resume()
        answer = await asked
        assert (answer.completion_tokens, answer.sends) == (1900, 1), "what ran was finished first"
        said, _ = await serve.communicate()
    assert serve.returncode == 0, said.decode()
    assert (await registry.server(server_id)).state is ServerState.STOPPED
    assert not [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    assert not host.processes(server_id)
