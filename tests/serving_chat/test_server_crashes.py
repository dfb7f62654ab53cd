"""Servers that crash with requests in flight: notes, suspects, poison pages."""

import asyncio
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from scripted_chat import Exchange, answering, saying, until

from docmill.failures import PoisonPage
from docmill.launching import Endpoint
from docmill.model_failures import ServerFault, ServerRestarted
from docmill.model_servers import ServerState
from serving.chat.circuit import CircuitState


@pytest.fixture
async def member(chat, registry):
    return await registry.ready(Endpoint(chat.url, served_name="scripted"))


@pytest.fixture
def page(question):
    return replace(question, page_id=uuid4())


async def crash(exchange: Exchange) -> None:
    """The server dies in the middle of an answer and is not back before it is started again."""
    await exchange.begin_stream()
    await exchange.piece("half")
    exchange.server.die()


def crash_and_restart(registry=None):
    """The same; its supervisor records it and starts it again."""

    async def behave(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.piece("half")
        if registry is not None:
            await registry.crash()
        exchange.reset()

    return behave


# --- notes ----------------------------------------------------------------------------------------------------------


async def test_a_note_stands_while_the_request_is_in_flight(made, chat, member, page, registry):
    seen = []

    async def look(exchange: Exchange) -> None:
        seen.append(registry.noted)
        await saying("ok")(exchange)

    chat.script[:] = [look]
    client = await made.client(await made.pool(member), registry)
    await client.ask(page)
    assert seen == [[page.page_id]]
    assert UUID(chat.sent[0].headers["x-request-id"])
    assert registry.noted == []


async def test_each_send_has_its_own_note(made, chat, member, page, registry):
    chat.script[:] = [answering(500, "{}")]
    await (await made.client(await made.pool(member), registry)).ask(page)
    assert registry.begun == [page.page_id] * 2
    assert len({sent.headers["x-request-id"] for sent in chat.sent}) == 2


async def test_no_notes_without_a_lease(made, chat, member, page, registry):
    await (await made.client(await made.pool(member.endpoint), registry)).ask(page)
    assert registry.begun == []


async def test_a_caller_that_gives_up_takes_its_note_back(made, chat, member, page, registry):
    async def never(exchange: Exchange) -> None:
        await exchange.gone()

    chat.script[:] = [never]
    client = await made.client(await made.pool(member), registry)
    asked = asyncio.create_task(client.ask(page))
    await chat.received(1)
    assert registry.noted == [page.page_id]
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    await client.aclose()
    assert registry.noted == []


async def test_a_registry_that_is_away_costs_one_warning(made, chat, member, page, registry, caplog):
    registry.away = True
    client = await made.client(await made.pool(member), registry)
    for _ in range(3):
        assert (await client.ask(page)).text == "ok"
    assert [record.levelname for record in caplog.records if "without notes" in record.message] == ["WARNING"]
    registry.away = False
    await client.ask(page)
    assert registry.begun == [page.page_id]


# --- crash or not ---------------------------------------------------------------------------------------------------


async def test_a_crash_is_survived_and_the_note_stood_until_it_was_recorded(made, chat, member, page, registry):
    chat.script[:] = [crash_and_restart(registry)]
    answer = await (await made.client(await made.pool(member), registry)).ask(page)
    assert (answer.text, answer.sends) == ("ok", 2)
    assert registry.crashes == {page.page_id: 1}


async def test_a_crash_that_is_recorded_late_is_found_all_the_same(made, chat, member, page, registry):
    """The supervisor needs a moment; the note must not be gone by then."""

    async def unwell_until_recorded(exchange: Exchange) -> None:
        if chat.checks == 4:
            await registry.crash()
            chat.health_behaviour = None
        await exchange.respond(503, "")

    async def break_down(exchange: Exchange) -> None:
        chat.checks = 0
        chat.health_behaviour = unwell_until_recorded
        exchange.reset()

    chat.script[:] = [break_down]
    answer = await (await made.client(await made.pool(member), registry)).ask(page)
    assert (answer.sends, registry.crashes) == (2, {page.page_id: 1})


async def test_a_broken_connection_alone_is_no_crash(made, chat, member, page, registry):
    chat.script[:] = [crash_and_restart(), crash_and_restart(), crash_and_restart()]
    answer = await (await made.client(await made.pool(member), registry)).ask(page)
    assert (answer.text, answer.sends) == ("ok", 4)


async def test_a_server_stopped_on_purpose_is_no_crash(made, chat, member, page, registry):
    await registry.enter(registry.server_id, ServerState.DRAINING)
    chat.script[:] = [crash_and_restart()] * 3
    assert (await (await made.client(await made.pool(member), registry)).ask(page)).sends == 4


async def test_a_server_that_was_given_up_has_crashed(made, chat, member, page, registry):
    await registry.enter(registry.server_id, ServerState.FAILED)
    chat.script[:] = [crash_and_restart()] * 3
    with pytest.raises(PoisonPage):
        await (await made.client(await made.pool(member), registry)).ask(page)


async def test_a_server_whose_row_is_a_little_late_has_not(made, chat, member, page, registry):
    """It answers already while its supervisor still warms it up."""
    await registry.enter(registry.server_id, ServerState.STARTING)
    chat.script[:] = [crash_and_restart()] * 3
    assert (await (await made.client(await made.pool(member), registry)).ask(page)).sends == 4


async def test_a_restart_is_seen_although_the_registry_was_away_at_the_sending(made, chat, member, page, registry):
    registry.away = True

    async def break_down(exchange: Exchange) -> None:
        registry.away = False
        await registry.record_restart(registry.server_id, code="server_crashed", message="m", exit_code=-9, log_tail="")
        exchange.reset()

    chat.script[:] = [break_down, crash_and_restart(registry)]
    with pytest.raises(PoisonPage):
        await (await made.client(await made.pool(member), registry)).ask(page)


async def test_an_answer_of_500_may_be_the_sign_of_a_crash(made, chat, member, page, registry):
    """vLLM's front end answers 500 while its engine is dead."""

    async def dying(exchange: Exchange) -> None:
        await registry.crash()
        await exchange.respond(500, '{"error":{"message":"EngineDeadError","code":500}}')

    chat.default = dying
    with pytest.raises(PoisonPage):
        await (await made.client(await made.pool(member), registry)).ask(page)
    assert len(chat.sent) == 2


# --- poison ---------------------------------------------------------------------------------------------------------


async def test_the_second_crash_sets_the_page_aside(made, chat, member, page, registry):
    chat.default = crash_and_restart(registry)
    with pytest.raises(PoisonPage, match="2 crashes") as caught:
        await (await made.client(await made.pool(member), registry)).ask(page)
    assert caught.value.detail == {"crashes": 2, "server": chat.url, "sends": 2}
    assert len(chat.sent) == 2


async def test_crashes_of_earlier_requests_for_the_page_count(made, chat, member, page, registry):
    registry.crashes[page.page_id] = 1
    chat.default = crash_and_restart(registry)
    with pytest.raises(PoisonPage):
        await (await made.client(await made.pool(member), registry)).ask(page)
    assert len(chat.sent) == 1


async def test_with_the_registry_away_the_requests_own_count_decides(made, chat, page, registry, member):
    registry.away = True
    chat.default = crash
    client = await made.client(await made.pool(member), registry)
    asked = asyncio.create_task(client.ask(page))
    await chat.stopping.wait()
    await until(lambda: client.pool.states()[0].circuit is CircuitState.OPEN)
    await chat.start()
    await chat.received(2)
    with pytest.raises(PoisonPage):
        await asked


async def test_attached_servers_that_fail_right_after_have_crashed(made, chat, page):
    chat.default = crash
    client = await made.client(await made.pool(Endpoint(chat.url)))
    asked = asyncio.create_task(client.ask(page))
    await chat.stopping.wait()
    await until(lambda: client.pool.states()[0].circuit is CircuitState.OPEN)
    await chat.start()
    with pytest.raises(PoisonPage):
        await asked
    assert len(chat.sent) == 2


async def test_attached_servers_that_are_well_have_not(made, chat, page):
    chat.script[:] = [crash_and_restart()] * 4
    assert (await (await made.client(await made.pool(Endpoint(chat.url)))).ask(page)).sends == 5


async def test_bystanders_of_a_poison_page_are_answered(made, chat, member, question, registry):
    """Eight requests are in flight when one of them brings the server down, each time that it is sent."""
    pages = [replace(question, page_id=uuid4()) for _ in range(8)]
    poison = replace(pages[3], instruction="poison")
    pages[3] = poison
    everyone = asyncio.Barrier(8)
    first, alone, running = True, [], 0
    down = asyncio.Event()

    async def behave(exchange: Exchange) -> None:
        nonlocal first, running
        if len(chat.sent) <= 8:
            await everyone.wait()
            if b"poison" in exchange.sent.body:
                await registry.crash()
                down.set()
            await down.wait()
            exchange.reset()
            return
        running += 1
        alone.append(running)
        await asyncio.sleep(0.01)
        running -= 1
        if b"poison" in exchange.sent.body:
            await registry.crash()
            exchange.reset()
        else:
            await saying("ok")(exchange)

    chat.default = behave
    client = await made.client(await made.pool(member), registry)
    outcomes = await asyncio.gather(*(client.ask(each) for each in pages), return_exceptions=True)
    assert [type(each) for each in outcomes].count(PoisonPage) == 1
    assert isinstance(outcomes[3], PoisonPage)
    assert {each.text for each in outcomes if not isinstance(each, PoisonPage)} == {"ok"}
    assert set(alone) == {1}
    assert registry.crashes[poison.page_id] == 2
    assert sorted(registry.crashes.values()) == [1] * 7 + [2]


async def test_waiting_for_the_turn_of_a_suspect_takes_no_patience(made, chat, member, question, registry):
    pages = [replace(question, page_id=uuid4()) for _ in range(4)]
    everyone, down = asyncio.Barrier(4), asyncio.Event()

    async def behave(exchange: Exchange) -> None:
        if len(chat.sent) <= 4:
            if await everyone.wait() == 0:
                await registry.crash()
                down.set()
            await down.wait()
            exchange.reset()
            return
        await asyncio.sleep(0.15)
        await saying("ok")(exchange)

    chat.default = behave
    client = await made.client(await made.pool(member), registry, patience=0.2)
    answers = await asyncio.gather(*(client.ask(each) for each in pages))
    assert [answer.text for answer in answers] == ["ok"] * 4


async def test_others_go_on_while_a_suspect_runs(made, chat, member, question, registry):
    suspect = replace(question, page_id=uuid4())
    let_go = asyncio.Event()

    async def slow(exchange: Exchange) -> None:
        await let_go.wait()
        await saying("slow")(exchange)

    chat.script[:] = [crash_and_restart(registry), slow]
    client = await made.client(await made.pool(member), registry)
    asked = asyncio.create_task(client.ask(suspect))
    await chat.received(2)
    assert (await client.ask(question)).text == "ok"
    let_go.set()
    assert (await asked).text == "slow"


async def test_a_crash_spends_no_attempt(made, chat, member, page, registry):
    """What is raised at the end of the patience is transient."""
    chat.script[:] = [crash_and_restart(registry)]
    with pytest.raises(ServerRestarted):
        await (await made.client(await made.pool(member), registry, patience=0.0)).ask(page)
    chat.default = answering(500, "{}")
    with pytest.raises(ServerFault):
        await (await made.client(await made.pool(member), registry, patience=0.0)).ask(page)
