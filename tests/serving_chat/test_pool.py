"""Which server a request goes to."""

import asyncio

import pytest
from scripted_chat import Exchange, answering, saying, until

from docmill.failures import ServerNotReady
from docmill.launching import Endpoint
from docmill.model_failures import ServedNameUnknown, ServerFault, ServerRefused
from serving.chat.circuit import CircuitState
from serving.chat.patience import Patience
from serving.chat.pool import EndpointPool


class Gate:
    """Answers that wait until they are let through."""

    def __init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, exchange: Exchange) -> None:
        await self.open.wait()
        await saying("ok")(exchange)


async def test_requests_spread_over_the_servers(made, question, started):
    one, two, three = await started(), await started(), await started()
    gate = Gate()
    servers = (one, two, three)
    for each in servers:
        each.default = gate
    pool = await made.pool(*(Endpoint(each.url) for each in servers))
    client = await made.client(pool)
    await until(lambda: all(state.healthy for state in pool.states()))
    asked = [asyncio.create_task(client.ask(question)) for _ in range(9)]
    await asyncio.gather(*(each.received(3) for each in servers))
    assert [state.outstanding for state in pool.states()] == [3, 3, 3]
    gate.open.set()
    await asyncio.gather(*asked)
    assert [len(each.sent) for each in servers] == [3, 3, 3]
    assert [state.outstanding for state in pool.states()] == [0, 0, 0]


async def test_the_least_busy_server_is_next(made, question, started):
    slow, quick = await started(), await started()
    gate = Gate()
    slow.script[:] = [gate]
    pool = await made.pool(Endpoint(slow.url), Endpoint(quick.url))
    client = await made.client(pool)
    await until(lambda: all(state.healthy for state in pool.states()))
    asked = [asyncio.create_task(client.ask(question)) for _ in range(2)]
    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
    assert len(slow.sent) == len(quick.sent) == 1
    for _ in range(5):
        assert (await client.ask(question)).served_by == quick.url
    gate.open.set()
    await asyncio.gather(*asked)


async def test_one_dead_server_of_three_costs_no_request(made, question, started):
    one, two, three = await started(), await started(), await started()
    pool = await made.pool(*(Endpoint(each.url) for each in (one, two, three)))
    client = await made.client(pool, patience=0.0)
    await asyncio.gather(*(client.ask(question) for _ in range(6)))
    await two.stop()
    pool.servers[1].suspected.set()
    await until(lambda: pool.states()[1].healthy is False)
    answers = await asyncio.gather(*(client.ask(question) for _ in range(12)))
    assert {answer.served_by for answer in answers} == {one.url, three.url}


async def test_a_server_that_dies_unseen_passes_its_requests_on(made, question, started):
    one, two = await started(), await started()
    pool = await made.pool(Endpoint(one.url), Endpoint(two.url))
    client = await made.client(pool)
    await asyncio.gather(*(client.ask(question) for _ in range(4)))
    await one.stop()
    answers = await asyncio.gather(*(client.ask(question) for _ in range(8)))
    assert {answer.served_by for answer in answers} == {two.url}
    assert pool.states()[0].circuit is CircuitState.OPEN


async def test_all_dead_names_each_server_and_why(made, question, started):
    ill, gone = await started(), await started()
    ill.health_status = 503
    await gone.stop()
    client = await made.client(await made.pool(Endpoint(ill.url), Endpoint(gone.url)), patience=0.1)
    with pytest.raises(ServerNotReady) as caught:
        await client.ask(question)
    assert f"{ill.url}: /health answers 503" in str(caught.value)
    assert f"{gone.url}: no connection" in str(caught.value)
    assert set(caught.value.detail["servers"]) == {ill.url, gone.url}


async def test_an_empty_pool_waits_for_a_server(made, chat, question):
    pool = await made.pool()
    client = await made.client(pool)
    asked = asyncio.create_task(client.ask(question))
    await asyncio.sleep(0)
    pool.replace([Endpoint(chat.url)])
    assert (await asked).served_by == chat.url


async def test_an_empty_pool_is_named_as_such(made, question):
    client = await made.client(await made.pool(), patience=0.0)
    with pytest.raises(ServerNotReady, match="no model server is up"):
        await client.ask(question)


async def test_servers_are_replaced_while_requests_run(made, question, started):
    old, new = await started(), await started()
    gate = Gate()
    old.default = gate
    pool = await made.pool(Endpoint(old.url))
    client = await made.client(pool)
    running = asyncio.create_task(client.ask(question))
    await old.received(1)
    pool.replace([Endpoint(new.url)])
    assert (await client.ask(question)).served_by == new.url
    assert [state.base_url for state in pool.states()] == [new.url]
    gate.open.set()
    assert (await running).served_by == old.url


async def test_servers_that_stay_keep_what_is_known_of_them(made, chat, question):
    pool = await made.pool(Endpoint(chat.url))
    await (await made.client(pool)).ask(question)
    (before,), checks = pool.servers, chat.checks
    pool.replace([Endpoint(chat.url, api_key="new")])
    assert pool.servers == (before,) and before.endpoint.api_key == "new"
    await (await made.client(pool)).ask(question)
    assert chat.sent[-1].headers["authorization"] == "Bearer new"
    assert chat.checks == checks


async def test_without_a_name_the_first_that_is_listed_is_used(made, question, started):
    chat = await started(models=("first", "second"))
    pool = await made.pool(Endpoint(chat.url), Endpoint(chat.url, served_name="second"))
    await until(lambda: all(state.healthy for state in pool.states()))
    client = await made.client(pool)
    await asyncio.gather(*(client.ask(question) for _ in range(2)))
    assert {sent.json["model"] for sent in chat.sent} == {"first", "second"}


async def test_a_name_that_no_server_lists_is_said_at_once(made, chat, question):
    client = await made.client(await made.pool(Endpoint(chat.url, served_name="missing")))
    with pytest.raises(ServedNameUnknown, match="does not serve 'missing', but scripted"):
        await client.ask(question)
    assert chat.sent == []


async def test_a_server_without_the_name_is_left_out(made, question, started):
    wrong, right = await started(models=("other",)), await started(models=("wanted",))
    pool = await made.pool(Endpoint(wrong.url, served_name="wanted"), Endpoint(right.url, served_name="wanted"))
    client = await made.client(pool)
    answers = await asyncio.gather(*(client.ask(question) for _ in range(6)))
    assert {answer.served_by for answer in answers} == {right.url}


async def test_a_refused_key_is_said_at_once(made, chat, question):
    chat.models_behaviour = answering(401, '{"error":"Unauthorized"}')
    client = await made.client(await made.pool(Endpoint(chat.url, api_key="s3cret")))
    with pytest.raises(ServerRefused, match="answers 401") as caught:
        await client.ask(question)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("listed", ["<html>", "[]", '{"data":[{}]}', '{"data":[]}', "null"])
async def test_what_is_no_list_of_models_keeps_a_server_out(made, chat, question, listed):
    chat.models_behaviour = answering(200, listed)
    client = await made.client(await made.pool(Endpoint(chat.url)), patience=0.05)
    with pytest.raises(ServerNotReady, match="/v1/models"):
        await client.ask(question)


async def test_servers_without_health_are_used_all_the_same(made, chat, question):
    chat.health_status = 404
    assert (await (await made.client(await made.pool(Endpoint(chat.url)))).ask(question)).text == "ok"


async def test_a_server_that_answers_badly_goes_on_trial(made, question, started):
    bad, good = await started(), await started()
    bad.default = answering(500, "{}")
    pool = await made.pool(Endpoint(bad.url), Endpoint(good.url), failures=3)
    client = await made.client(pool)
    await until(lambda: all(state.healthy for state in pool.states()))
    while pool.states()[0].circuit is CircuitState.CLOSED:
        await client.ask(question)
    assert len(bad.sent) == 3
    bad.default = saying("ok")
    await until(lambda: pool.states()[0].circuit is CircuitState.HALF_OPEN)
    await asyncio.gather(*(client.ask(question) for _ in range(4)))
    assert pool.states()[0].circuit is CircuitState.CLOSED
    assert len(bad.sent) >= 4


async def test_a_slow_check_alone_does_not_put_a_server_out(made, chat, question):
    pool = await made.pool(Endpoint(chat.url), health_seconds=0.05, check_seconds=0.02, failures=3)
    client = await made.client(pool)
    await client.ask(question)

    async def slow(exchange: Exchange) -> None:
        await exchange.gone()

    chat.health_behaviour = slow
    await until(lambda: pool.states()[0].last_error is not None)
    assert pool.states()[0].healthy
    await until(lambda: pool.states()[0].healthy is False)
    chat.health_behaviour = None
    assert (await client.ask(question)).text == "ok"


async def test_waiting_for_the_first_check_takes_no_patience(chat):
    async with EndpointPool([Endpoint(chat.url)]) as pool:
        patience = Patience(0.0)
        async with pool.lend(patience) as server:
            assert server.url == chat.url
        assert patience.waited == 0.0


async def test_states_before_and_after_the_first_check(made, chat):
    pool = await made.pool(Endpoint(chat.url))
    assert pool.states()[0].healthy is None
    await until(lambda: bool(pool.states()[0].healthy))
    assert pool.states()[0].models == ("scripted",)


async def test_a_fault_of_one_server_is_met_by_another_without_a_wait(made, question, started):
    bad, good = await started(), await started()
    bad.default = answering(500, "{}")
    pool = await made.pool(Endpoint(bad.url), Endpoint(good.url), failures=1000)
    client = await made.client(pool, patience=1e-9)
    answers = await asyncio.gather(*(client.ask(question) for _ in range(10)))
    assert {answer.served_by for answer in answers} == {good.url}
    good.default = answering(500, "{}")
    with pytest.raises(ServerFault) as caught:
        await client.ask(question)
    assert caught.value.detail["sends"] == 2
