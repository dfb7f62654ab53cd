"""The body that is sent."""

import base64
import json

import pytest

from docmill.chat import ChatRequest
from docmill.failures import ConfigurationError
from docmill.ports import PageImage
from serving.chat import payload as payload_module
from serving.chat.payload import payload_of

PNG = b"\x89PNG\r\n\x1a\n" + b"picture"
JPEG = b"\xff\xd8\xff\xe0" + b"picture"


async def body_of(request: ChatRequest, model: str = "m") -> dict:
    return json.loads((await payload_of(request)).body(model))


def page(data: bytes, media_type: str) -> PageImage:
    return PageImage(data, media_type, 10, 10)


async def test_content_is_an_array_with_the_fixed_text_first():
    body = await body_of(ChatRequest(instruction="fixed", images=(page(PNG, "image/png"),), closing="words"))
    (message,) = body["messages"]
    assert message["role"] == "user"
    assert [part["type"] for part in message["content"]] == ["text", "image_url", "text"]
    assert [message["content"][0]["text"], message["content"][2]["text"]] == ["fixed", "words"]


async def test_without_pictures_content_is_an_array_as_well():
    body = await body_of(ChatRequest(instruction="fixed", system="be exact"))
    assert body["messages"] == [
        {"role": "system", "content": [{"type": "text", "text": "be exact"}]},
        {"role": "user", "content": [{"type": "text", "text": "fixed"}]},
    ]


@pytest.mark.parametrize("declared", ["image/png", "image/jpeg", "text/html", ""])
@pytest.mark.parametrize(("data", "real"), [(PNG, "image/png"), (JPEG, "image/jpeg")])
async def test_pictures_are_data_uris_of_their_real_type(data, real, declared):
    body = await body_of(ChatRequest(instruction="x", images=(page(data, declared),)))
    url = body["messages"][0]["content"][1]["image_url"]["url"]
    assert url == f"data:{real};base64,{base64.b64encode(data).decode()}"


async def test_bytes_that_name_an_address_stay_bytes():
    body = await body_of(ChatRequest(instruction="x", images=(page(b"http://example.org/a.png", "image/png"),)))
    assert body["messages"][0]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")


async def test_fields_of_the_request():
    request = ChatRequest(
        instruction="x",
        schema={"type": "object"},
        max_tokens=77,
        temperature=0.3,
        logprobs=True,
        top_logprobs=4,
        extra={"chat_template_kwargs": {"thinking_mode": "disabled"}, "repetition_penalty": 1.05},
    )
    body = await body_of(request, 'name "quoted"')
    del body["messages"]
    assert body == {
        "model": 'name "quoted"',
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 77,
        "temperature": 0.3,
        "logprobs": True,
        "top_logprobs": 4,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": True},
        },
        "chat_template_kwargs": {"thinking_mode": "disabled"},
        "repetition_penalty": 1.05,
    }


async def test_large_pictures_give_the_same_body(monkeypatch):
    request = ChatRequest(instruction='ünï \u2028 "x"', images=(page(PNG, "image/png"), page(JPEG, "image/jpeg")))
    small = (await payload_of(request)).body("m")
    monkeypatch.setattr(payload_module, "_LARGE_BYTES", 0)
    assert (await payload_of(request)).body("m") == small


def test_the_clients_own_fields_cannot_be_overwritten():
    with pytest.raises(ConfigurationError, match="messages, model"):
        ChatRequest(instruction="x", extra={"model": "other", "messages": [], "seed": 1})


def test_pages_are_not_in_the_representation():
    request = ChatRequest(instruction="Jane Doe", images=(page(b"Jane Doe", "image/png"),), closing="Jane Doe")
    assert "Jane" not in repr(request)
