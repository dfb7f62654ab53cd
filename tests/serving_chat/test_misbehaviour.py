"""Every way in which a server misbehaves: the right error, the right number of sends, the body kept."""

import asyncio
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from scripted_chat import Exchange, answering, saying, until

from docmill.chat import ChatRequest
from docmill.failures import ConfigurationError, EmptyOutput, RequestTimeout, ServerNotReady, ServerOverloaded
from docmill.launching import Endpoint
from docmill.model_failures import BadRequest, ServedNameUnknown, ServerFault, ServerRefused, ServerRestarted
from docmill.ports import PageImage
from serving.chat.circuit import CircuitState

BODY = '{"error":{"message":"Jane Doe is no date","type":"BadRequestError","code":400}}'


# --- what a server does ---------------------------------------------------------------------------------------------


async def reset_before_headers(exchange: Exchange) -> None:
    exchange.reset()


async def reset_after_headers(exchange: Exchange) -> None:
    await exchange.begin_stream()
    exchange.reset()


async def reset_in_the_middle(exchange: Exchange) -> None:
    await exchange.begin_stream()
    await exchange.piece("half an ans")
    exchange.reset()


async def closed_in_the_middle(exchange: Exchange) -> None:
    await exchange.begin_stream()
    await exchange.piece("half an ans")
    exchange.writer.close()


async def half_an_event(exchange: Exchange) -> None:
    await exchange.begin_stream()
    await exchange.piece("half an ans")
    await exchange.write(b'data: {"id":"chatcmpl-1","choices":[{"index":0,"del')
    await exchange.end_stream()


async def ended_in_the_middle(exchange: Exchange) -> None:
    await exchange.begin_stream()
    await exchange.piece("half an ans")
    await exchange.end_stream()


async def silent(exchange: Exchange) -> None:
    await exchange.gone()


async def silent_after_headers(exchange: Exchange) -> None:
    await exchange.begin_stream()
    await exchange.gone()


async def silent_in_the_middle(exchange: Exchange) -> None:
    await exchange.begin_stream()
    await exchange.piece("half an ans")
    await exchange.gone()


async def endless(exchange: Exchange) -> None:
    await exchange.begin_stream()
    while True:
        await exchange.piece("and ")
        await asyncio.sleep(0.01)


async def only_comments(exchange: Exchange) -> None:
    await exchange.begin_stream()
    while True:
        await exchange.write(b": ping\n\n")
        await asyncio.sleep(0.01)


def events(*held: str):
    async def behave(exchange: Exchange) -> None:
        await exchange.begin_stream()
        for each in held:
            await exchange.event(each)
        await exchange.end_stream()

    return behave


HTML = answering(502, "<html>Bad Gateway</html>", kind="text/html")

# --- transient: sent again, and answered ------------------------------------------------------------------------------

TRANSIENT = {
    "reset before headers": (reset_before_headers, ServerRestarted),
    "reset after headers": (reset_after_headers, ServerRestarted),
    "reset in the middle": (reset_in_the_middle, ServerRestarted),
    "closed in the middle": (closed_in_the_middle, ServerRestarted),
    "half an event": (half_an_event, ServerRestarted),
    "ended in the middle": (ended_in_the_middle, ServerRestarted),
    "408": (answering(408, BODY), RequestTimeout),
    "429": (answering(429, BODY), ServerOverloaded),
    "503": (answering(503, BODY), ServerOverloaded),
    "500": (answering(500, BODY), ServerFault),
    "502 of a proxy": (HTML, ServerFault),
    "504": (answering(504, BODY), ServerFault),
    "200 of a proxy": (answering(200, "<html>log in</html>", kind="text/html"), ServerFault),
    "JSON that is broken": (answering(200, '{"choices":[{'), ServerFault),
    "JSON of another kind": (answering(200, '{"result":"ok"}'), ServerFault),
    "events that are broken": (events('{"choices":'), ServerFault),
    "an error within the stream": (events('{"error":{"code":500,"message":"x"}}', "[DONE]"), ServerFault),
    "no event at all": (events(), ServerRestarted),
    "body that is not gzip": (answering(200, "plain", content_encoding="gzip"), ServerFault),
}


@pytest.mark.parametrize(("behaviour", "_kind"), TRANSIENT.values(), ids=TRANSIENT)
async def test_it_is_sent_again_and_answered(client, chat, question, behaviour, _kind):
    chat.script[:] = [behaviour, behaviour, saying("all is well")]
    answer = await client.ask(question)
    assert (answer.text, answer.sends, len(chat.sent)) == ("all is well", 3, 3)
    assert len({sent.body for sent in chat.sent}) == 1


@pytest.mark.parametrize(("behaviour", "kind"), TRANSIENT.values(), ids=TRANSIENT)
async def test_without_patience_it_is_the_error_after_one_send(made, chat, question, behaviour, kind):
    chat.script[:] = [behaviour]
    client = await made.client(await made.pool(Endpoint(chat.url)), patience=0.0)
    with pytest.raises(kind) as caught:
        await client.ask(question)
    assert type(caught.value) is kind
    assert len(chat.sent) == 1
    assert caught.value.detail["sends"] == 1
    assert caught.value.detail["server"] == chat.url


@pytest.mark.parametrize(
    ("behaviour", "body"),
    [(answering(500, BODY), BODY), (HTML, "<html>Bad Gateway</html>"), (events('{"choices":'), '{"choices":')],
)
async def test_what_the_server_said_is_kept(made, chat, question, behaviour, body):
    chat.script[:] = [behaviour]
    client = await made.client(await made.pool(Endpoint(chat.url)), patience=0.0)
    with pytest.raises(ServerFault) as caught:
        await client.ask(question)
    assert caught.value.detail["body"] == body


async def test_patience_ends_with_the_last_error(made, chat, question):
    chat.default = answering(500, BODY)
    client = await made.client(await made.pool(Endpoint(chat.url), failures=10_000), patience=0.2)
    with pytest.raises(ServerFault) as caught:
        await client.ask(question)
    assert caught.value.detail["sends"] == len(chat.sent) > 2


# --- permanent: sent once ---------------------------------------------------------------------------------------------

PERMANENT = {400: BadRequest, 413: BadRequest, 422: BadRequest, 404: ServedNameUnknown, 401: ServerRefused,
             403: ServerRefused, 307: ConfigurationError}  # fmt: skip


@pytest.mark.parametrize(("status", "kind"), PERMANENT.items())
async def test_what_sending_again_cannot_change_is_sent_once(client, chat, question, status, kind):
    chat.script[:] = [answering(status, BODY, location="http://127.0.0.1:1/elsewhere")]
    with pytest.raises(kind) as caught:
        await client.ask(question)
    assert type(caught.value) is kind
    assert len(chat.sent) == caught.value.detail["sends"] == 1
    assert caught.value.detail["body"] == BODY
    assert "Jane" not in str(caught.value)


async def test_an_unknown_name_says_which_there_are(client, chat, question):
    chat.models = ("qwen", "other")
    chat.script[:] = [answering(404, BODY)]
    with pytest.raises(ServedNameUnknown, match="qwen, other"):
        await client.ask(question)


async def test_an_echo_of_the_picture_is_cut_out(client, chat, question):
    async def echo(exchange: Exchange) -> None:
        await exchange.respond(400, exchange.sent.body)

    chat.script[:] = [echo]
    with pytest.raises(BadRequest) as caught:
        await client.ask(question)
    assert "Read the page." in caught.value.detail["body"] and "iVBORw0KGgo" not in caught.value.detail["body"]


async def test_no_choices_are_an_empty_output(client, chat, question):
    chat.script[:] = [events('{"id":"c","choices":[]}', "[DONE]")]
    with pytest.raises(EmptyOutput):
        await client.ask(question)
    assert len(chat.sent) == 1


# --- overload ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_a_wait_longer_than_the_patience_ends_at_once(client, chat, question, status, form):
    in_an_hour = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    chat.script[:] = [answering(status, BODY, Retry_After={"seconds": "3600", "date": in_an_hour}[form])]
    with pytest.raises(ServerOverloaded) as caught:
        await client.ask(question)
    assert len(chat.sent) == 1
    assert 3500 < caught.value.detail["retry_after"] <= 3600


async def test_retry_after_is_waited_for(client, chat, question):
    chat.script[:] = [answering(503, BODY, Retry_After="0.3")]
    times = []

    async def timed(exchange: Exchange) -> None:
        times.append(asyncio.get_running_loop().time())
        await saying("ok")(exchange)

    chat.script.append(timed)
    began = asyncio.get_running_loop().time()
    assert (await client.ask(question)).sends == 2
    assert times[0] - began >= 0.3


async def test_a_server_that_asks_for_rest_leaves_requests_to_the_others(made, question, started):
    busy, idle = await started(), await started()
    busy.default = answering(429, BODY, Retry_After="3600")
    client = await made.client(await made.pool(Endpoint(busy.url), Endpoint(idle.url)))
    answers = await asyncio.gather(*(client.ask(question) for _ in range(10)))
    assert {answer.served_by for answer in answers} == {idle.url}
    later = await asyncio.gather(*(client.ask(question) for _ in range(10)))
    assert {answer.sends for answer in later} == {1}


# --- silence ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (silent, "did not begin its answer within 0.1 s"),
        (silent_after_headers, "did not begin its answer within 0.1 s"),
        (only_comments, "did not begin its answer within 0.1 s"),
        (silent_in_the_middle, "fell silent in the middle of its answer for 0.1 s"),
    ],
)
async def test_silence_is_noticed_and_the_request_sent_again(made, chat, question, hasty, behaviour, said):
    question = replace(question, deadlines=hasty)
    chat.script[:] = [behaviour, saying("all is well"), behaviour]
    pool = await made.pool(Endpoint(chat.url))
    assert (await (await made.client(pool)).ask(question)).sends == 2
    with pytest.raises(RequestTimeout, match=said) as caught:
        await (await made.client(pool, patience=0.0)).ask(question)
    assert caught.value.detail["sends"] == 1


async def test_an_endless_answer_ends_at_the_deadline(made, chat, question, hasty):
    chat.script[:] = [endless]
    client = await made.client(await made.pool(Endpoint(chat.url)), patience=0.0)
    with pytest.raises(RequestTimeout, match=r"did not finish its answer within 0\.3 s"):
        await client.ask(replace(question, deadlines=replace(hasty, total_seconds=0.3)))


async def test_time_spent_on_deadlines_counts_as_patience(made, chat, question, hasty):
    chat.default = silent
    client = await made.client(await made.pool(Endpoint(chat.url), failures=1000), patience=0.25)
    with pytest.raises(RequestTimeout):
        await client.ask(replace(question, deadlines=hasty))
    assert len(chat.sent) <= 3


# --- no server at all -------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


async def test_refused_connections_name_the_server(made, question):
    url = f"http://127.0.0.1:{free_port()}"
    client = await made.client(await made.pool(Endpoint(url)), patience=0.1)
    with pytest.raises(ServerNotReady, match=f"{url}: no connection") as caught:
        await client.ask(question)
    assert caught.value.detail["sends"] == 0


async def test_a_server_that_stops_is_waited_for(made, question, started):
    chat = await started()
    client = await made.client(await made.pool(Endpoint(chat.url)))
    assert (await client.ask(question)).sends == 1
    await chat.stop()
    asked = asyncio.create_task(client.ask(question))
    await until(lambda: client.pool.states()[0].circuit is CircuitState.OPEN)
    assert not asked.done()
    await chat.start()
    assert (await asked).text == "ok"


# --- answers ----------------------------------------------------------------------------------------------------------


async def test_an_answer_with_all_that_is_known_of_it(client, chat, question):
    chat.script[:] = [saying("total: 12.50 €", finish="length", usage={"prompt_tokens": 900, "completion_tokens": 3})]
    answer = await client.ask(question)
    assert (answer.text, answer.finish_reason) == ("total: 12.50 €", "length")
    assert (answer.prompt_tokens, answer.completion_tokens) == (900, 3)
    assert (answer.served_by, answer.model, answer.request_id) == (chat.url, "scripted", "chatcmpl-1")
    assert 0 < answer.first_token_seconds <= answer.total_seconds
    assert "12.50" not in repr(answer)


async def test_a_server_that_does_not_stream(client, chat, question):
    whole = {"id": "c9", "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 2},
             "choices": [{"index": 0, "message": {"content": "whole"}, "finish_reason": "stop"}]}  # fmt: skip
    chat.script[:] = [answering(200, whole)]
    answer = await client.ask(question)
    assert (answer.text, answer.finish_reason, answer.completion_tokens) == ("whole", "stop", 2)


async def test_an_answer_that_is_whole_needs_no_usage_and_no_end(client, chat, question):
    async def broken_after_the_last_token(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.piece("whole", finish="stop")
        exchange.reset()

    chat.script[:] = [broken_after_the_last_token]
    answer = await client.ask(question)
    assert (answer.text, answer.prompt_tokens, answer.sends) == ("whole", None, 1)


async def test_a_connection_left_open_after_the_end_costs_nothing(client, chat, question):
    async def never_closed(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.piece("whole", finish="stop")
        await exchange.event("[DONE]")
        await exchange.gone()

    chat.script[:] = [never_closed]
    assert (await client.ask(question)).text == "whole"


async def test_a_watcher_ends_an_answer_early(client, chat, question):
    seen = []

    def watch():
        seen.clear()
        return lambda piece: seen.append(piece) or len(seen) == 3

    chat.script[:] = [reset_in_the_middle, endless]
    answer = await client.ask(question, watch=watch)
    assert (answer.text, answer.finish_reason, answer.sends) == ("and and and ", "cut", 2)
    assert seen == ["and "] * 3


async def test_a_caller_that_gives_up_leaves_nothing_behind(client, chat, question):
    chat.script[:] = [silent]
    asked = asyncio.create_task(client.ask(question))
    await chat.received(1)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert [server.outstanding for server in client.pool.servers] == [0]
    assert (await client.ask(question)).text == "ok"


async def test_mistakes_of_the_caller_are_not_hidden(client, question):
    def watch():
        return lambda piece: 1 / 0

    with pytest.raises(ZeroDivisionError):
        await client.ask(question, watch=watch)


async def test_a_large_request_goes_through(client, chat):
    picture = b"\xff\xd8\xff" + bytes(3_000_000)
    await client.ask(ChatRequest(instruction="x", images=(PageImage(picture, "image/jpeg", 1, 1),)))
    assert len(chat.sent[0].body) > 4_000_000
