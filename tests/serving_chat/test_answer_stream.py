"""Answers put together from events."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.failures import ServerOverloaded
from docmill.model_failures import BadRequest, ServerFault
from serving.chat.answer_stream import AnswerSoFar, data_of


def event(**choice) -> bytes:
    return json.dumps({"id": "c1", "model": "m", "choices": [{"index": 0, **choice}]}, ensure_ascii=False).encode()


async def parts(*chunks: bytes):
    for chunk in chunks:
        yield chunk


@given(st.data(), st.text(max_size=40))
async def test_events_survive_any_cut_of_the_bytes(data, text):
    whole = b": ping\n\ndata: " + event(delta={"content": text}) + b"\r\n\r\nevent: x\ndata:[DONE]\n\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    answer = AnswerSoFar("s", "m")
    for held in [each async for each in data_of(parts(*chunks))]:
        answer.add(held)
    assert answer.text == text and answer.done


async def test_other_line_separators_of_unicode_are_text():
    text = "a\u2028b\u0085c\x0bd"
    raw = '{"choices":[{"index":0,"delta":{"content":"a\u2028b\u0085c\\u000bd"}}]}'.encode()
    (held,) = [each async for each in data_of(parts(b"data: " + raw + b"\n\n"))]
    assert AnswerSoFar("s", "m").add(held) == text


def test_an_answer_grows():
    answer = AnswerSoFar("s", "m")
    assert answer.add(event(delta={"role": "assistant", "content": ""})) == ""
    assert answer.add(event(delta={"reasoning_content": "hm"})) == ""
    assert answer.add(event(delta={"content": "to"})) == "to"
    assert answer.add(event(delta={"content": "tal"}, finish_reason="length")) == "tal"
    answer.add(b'{"choices":[],"usage":{"prompt_tokens":3}}')
    assert (answer.text, answer.reasoning, answer.finish_reason) == ("total", "hm", "length")
    assert (answer.usage, answer.request_id, answer.began) == ({"prompt_tokens": 3}, "c1", True)


def test_log_probabilities_with_their_bytes():
    token = {"token": "é", "logprob": -0.25, "bytes": [195, 169], "top_logprobs": [{"token": "e", "logprob": -2.0}]}
    answer = AnswerSoFar("s", "m")
    answer.add(event(delta={"content": "é"}, logprobs={"content": [token, {"token": "x", "logprob": -1}]}))
    first, second = answer.logprobs
    assert (first.data, first.logprob, first.top) == ("é".encode(), -0.25, (("e", -2.0),))
    assert (second.text, second.data, second.top) == ("x", None, ())


@pytest.mark.parametrize(
    "wrong",
    [b"<html>", b"{", b"[1]", b"null", b"{}", b'{"choices":3}', b'{"choices":[3]}', b'{"choices":null}', b"\xff\xfe",
     b'{"choices":[{"delta":{"content":3}}]}', b'{"choices":[{"delta":"x"}]}',
     b'{"choices":[{"logprobs":{"content":[{}]}}]}'],
)  # fmt: skip
def test_what_is_no_event_is_a_fault_with_its_body(wrong):
    with pytest.raises(ServerFault) as caught:
        AnswerSoFar("s", "m").add(wrong)
    assert caught.value.detail["body"] == wrong.decode(errors="replace")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 400, "message": "m"}, BadRequest),
        ({"code": 503, "message": "m"}, ServerOverloaded),
        ({"code": 500}, ServerFault),
        ({"code": "bad"}, ServerFault),
        ("text", ServerFault),
    ],
)
def test_errors_within_a_stream_count_by_their_status(error, kind):
    with pytest.raises(kind):
        AnswerSoFar("s", "m").add(json.dumps({"error": error}).encode())
