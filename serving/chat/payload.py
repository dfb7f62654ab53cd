"""The body of a request: made once, sent as often as it takes."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from typing import Any

from docmill.chat import ChatRequest
from docmill.failures import DocmillError
from docmill.ports import PageImage
from docmill.rendering.sniff import HEAD_BYTES, media_type_of

_LARGE_BYTES = 2**21
"""Pictures of more bytes together are encoded in a thread; below that it takes less than 3 ms."""


class Payload:
    """The JSON body of a request for whichever model name the server uses."""

    def __init__(self, rest: bytes) -> None:
        self._rest = rest

    def body(self, model: str) -> bytes:
        """UTF-8 JSON."""
        return b"".join((b'{"model":', _json(model), b",", self._rest))


async def payload_of(request: ChatRequest) -> Payload:
    """The body, with pictures as data URIs of their real type (never as addresses).

    The pictures' base64 is put between pieces of JSON, since writing a megabyte as a JSON string costs more than all
    the rest of the request.
    """
    if sum(len(image.data) for image in request.images) > _LARGE_BYTES:
        return await asyncio.to_thread(_encoded, request)
    return _encoded(request)


def _encoded(request: ChatRequest) -> Payload:
    parts = [_text(request.instruction), *(_picture(image) for image in request.images)]
    if request.closing:
        parts.append(_text(request.closing))
    messages = [b'{"role":"user","content":[' + b",".join(parts) + b"]}"]
    if request.system is not None:
        messages.insert(0, b'{"role":"system","content":[' + _text(request.system) + b"]}")
    return Payload(b'"messages":[' + b",".join(messages) + b"]," + _json(_fields(request))[1:])


def _fields(request: ChatRequest) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        **request.extra,
    }
    if request.schema is not None:
        held = {"name": "answer", "schema": request.schema, "strict": True}
        fields["response_format"] = {"type": "json_schema", "json_schema": held}
    if request.logprobs:
        fields["logprobs"] = True
        if request.top_logprobs:
            fields["top_logprobs"] = request.top_logprobs
    return fields


def _text(text: str) -> bytes:
    return _json({"type": "text", "text": text})


def _picture(image: PageImage) -> bytes:
    start = f'{{"type":"image_url","image_url":{{"url":"data:{_media_type(image)};base64,'
    return b"".join((start.encode(), b64encode(image.data), b'"}}'))


def _media_type(image: PageImage) -> str:
    try:
        return media_type_of(image.data[:HEAD_BYTES])
    except DocmillError:
        return image.media_type if image.media_type.startswith("image/") and image.media_type.isascii() else "image/png"


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), default=dict).encode()
