"""A streamed answer put together, event by event."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from docmill.chat import TokenLogprob
from docmill.model_failures import ServerFault
from serving.chat.status_errors import error_of_status, kept_body

DONE = b"[DONE]"


async def data_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    r"""The data of server-sent events, one line each, as model servers write them.

    Lines end in ``\n`` alone (or ``\r\n``): the answer itself may hold other line separators of Unicode.
    """
    held = b""
    async for chunk in chunks:
        *lines, held = (held + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()


class AnswerSoFar:
    """What has come of an answer.

    Attributes:
        finish_reason: None while the answer goes on.
        began: whether any choice has come.
    """

    def __init__(self, server: str, model: str) -> None:
        self._server = server
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self.logprobs: list[TokenLogprob] = []
        self.model = model
        self.request_id = ""
        self.finish_reason: str | None = None
        self.usage: dict[str, Any] = {}
        self.began = False
        self.done = False

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """What was thought so far."""
        return "".join(self._reasoning)

    def add(self, data: bytes) -> str:
        """Take in one event of a stream (or a whole answer that was not streamed); the piece of text that it brought.

        Raises:
            ServerFault: it is no event of an answer.
            DocmillError: the server broke the answer off, as :func:`error_of_status` reads it.
        """
        if data == DONE:
            self.done = True
            return ""
        try:
            event = json.loads(data)
        except ValueError:  # UnicodeDecodeError is one
            event = None
        if not isinstance(event, dict):
            raise self._fault("the answer is not JSON", data)
        if event.get("error"):
            raise self._broken_off(event, data)
        try:
            return self._take(event)
        except (KeyError, TypeError, AttributeError, ValueError):
            pass
        raise self._fault("the answer has not the form of a chat completion", data)

    def _take(self, event: Mapping[str, Any]) -> str:
        self.request_id = str(event.get("id") or self.request_id)
        self.model = str(event.get("model") or self.model)
        usage = event.get("usage")
        if usage:
            self.usage = dict(usage)
        piece = ""
        for choice in event["choices"]:
            if choice.get("index", 0) != 0:
                continue
            self.began = True
            said = choice.get("delta") or choice.get("message") or {}
            piece += said.get("content") or ""
            thought = said.get("reasoning_content") or said.get("reasoning") or ""
            if thought:
                self._reasoning.append(str(thought))
            for token in (choice.get("logprobs") or {}).get("content") or ():
                self.logprobs.append(_token(token))
            if choice.get("finish_reason"):
                self.finish_reason = str(choice["finish_reason"])
        if piece:
            self._text.append(piece)
        return piece

    def _broken_off(self, event: Mapping[str, Any], data: bytes) -> Exception:
        error = event["error"]
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 500
        return error_of_status(status, data.decode(errors="replace"), server=self._server, model=self.model)

    def _fault(self, what: str, data: bytes) -> ServerFault:
        detail = {"server": self._server, "body": kept_body(data.decode(errors="replace"))}
        return ServerFault(f"{self._server}: {what}", detail=detail)


def _token(token: Mapping[str, Any]) -> TokenLogprob:
    held = token.get("bytes")
    return TokenLogprob(
        text=str(token["token"]),
        logprob=float(token["logprob"]),
        data=None if held is None else bytes(held),
        top=tuple((str(each["token"]), float(each["logprob"])) for each in token.get("top_logprobs") or ()),
    )
