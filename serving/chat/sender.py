"""One request sent once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any
from uuid import UUID

import httpx

from docmill.chat import ChatAnswer, ChatRequest, Deadlines
from docmill.failures import DocmillError, EmptyOutput, RequestTimeout
from docmill.model_failures import ServerFault, ServerRestarted
from serving.chat.answer_stream import AnswerSoFar, data_of
from serving.chat.health import http_client
from serving.chat.payload import Payload
from serving.chat.pooled_server import PooledServer
from serving.chat.sdk import headers_of, new_sdk, translated
from serving.chat.status_errors import kept_body

Watch = Callable[[], Callable[[str], bool]]
"""Makes a watcher for each send; a watcher gets every piece of text and ends the answer by returning True."""

CUT = "cut"
"""The finish reason of an answer that its watcher ended."""

DRAIN_SECONDS = 0.2
"""What the end of a stream gets after the last event, so that the connection can be used again."""


class Sender:
    """Sends requests through the OpenAI SDK, whose own retries are off. Every error is a DocmillError."""

    def __init__(self) -> None:
        self._http: httpx.AsyncClient | None = None
        self._sdk: Any = None
        self._starting = asyncio.Lock()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()
        self._http = self._sdk = None

    async def send(
        self, server: PooledServer, payload: Payload, request: ChatRequest, *, request_id: UUID, watch: Watch | None
    ) -> ChatAnswer:
        """The answer.

        Raises:
            ServerNotReady: no connection; nothing was sent.
            ServerRestarted: the connection broke after something was sent.
            RequestTimeout: a deadline passed.
            EmptyOutput: an answer without any choice.
            ServerFault: the answer is none.
            DocmillError: by status, see :func:`error_of_status`.
        """
        sdk = await self._started()
        answer = AnswerSoFar(server.url, server.model)
        watched = None if watch is None else watch()
        deadlines = request.deadlines
        time = asyncio.get_running_loop().time
        began = time()
        clock = asyncio.timeout_at(began + min(deadlines.first_token_seconds, deadlines.total_seconds))
        first: float | None = None
        problem: DocmillError | None = None
        try:
            async with clock, aclosing(self._pieces(sdk, server, payload, deadlines, request_id, answer)) as pieces:
                async for piece in pieces:
                    now = time()
                    if piece and first is None:
                        first = now - began
                    if piece and watched is not None and watched(piece):
                        answer.finish_reason = CUT
                        break
                    until = DRAIN_SECONDS if answer.done else deadlines.between_tokens_seconds
                    clock.reschedule(min(now + until, began + deadlines.total_seconds))
        except TimeoutError:
            problem = _too_late(server.url, time() - began, answer.began, deadlines)
        except DocmillError as error:
            problem = error
        except Exception as error:
            problem = translated(error, server)
            if problem is None:
                raise
        _raise_unless_whole(answer, problem, server.url)
        counts = answer.usage
        return ChatAnswer(
            text=answer.text,
            finish_reason=answer.finish_reason or "unknown",
            prompt_tokens=_count(counts.get("prompt_tokens")),
            completion_tokens=_count(counts.get("completion_tokens")),
            first_token_seconds=first,
            total_seconds=time() - began,
            served_by=server.url,
            model=answer.model,
            request_id=answer.request_id or str(request_id),
            logprobs=tuple(answer.logprobs),
            reasoning=answer.reasoning,
            usage=counts,
        )

    async def _pieces(
        self,
        sdk: Any,
        server: PooledServer,
        payload: Payload,
        deadlines: Deadlines,
        request_id: UUID,
        answer: AnswerSoFar,
    ) -> AsyncGenerator[str]:
        response: httpx.Response = await sdk.post(
            f"{server.url}/v1/chat/completions",
            content=payload.body(server.model),
            cast_to=httpx.Response,
            stream=True,
            options={
                "headers": headers_of(server.endpoint, request_id),
                "timeout": httpx.Timeout(None, connect=deadlines.connect_seconds),
            },
        )
        try:
            kind = response.headers.get("content-type", "")
            if kind.startswith("text/event-stream"):
                async for data in data_of(response.aiter_bytes()):
                    yield answer.add(data)
            elif kind.startswith("application/json"):  # a server that does not stream
                piece = answer.add(await response.aread())
                answer.done = True
                yield piece
            else:
                body = kept_body((await response.aread()).decode(errors="replace"))
                detail = {"server": server.url, "status": response.status_code, "body": body}
                raise ServerFault(f"{server.url} answered with something that is no answer of a model", detail=detail)
        finally:
            await response.aclose()

    async def _started(self) -> Any:
        async with self._starting:
            if self._sdk is None:
                self._http = http_client(timeout=httpx.Timeout(None, connect=5.0))
                self._sdk = await new_sdk(self._http)
        return self._sdk


def _raise_unless_whole(answer: AnswerSoFar, problem: DocmillError | None, url: str) -> None:
    whole = answer.done or answer.finish_reason is not None
    if problem is None and not whole:
        problem = ServerRestarted(f"{url} ended its answer in the middle", detail={"server": url})
    if problem is not None and not (whole and isinstance(problem, RequestTimeout | ServerRestarted)):
        raise problem
    if not answer.began:
        raise EmptyOutput("the server answered without any choice", detail={"server": url})


def _too_late(url: str, seconds: float, began: bool, deadlines: Deadlines) -> RequestTimeout:
    if seconds >= deadlines.total_seconds:
        what = f"did not finish its answer within {deadlines.total_seconds:g} s"
    elif began:
        what = f"fell silent in the middle of its answer for {deadlines.between_tokens_seconds:g} s"
    else:
        what = f"did not begin its answer within {deadlines.first_token_seconds:g} s"
    return RequestTimeout(f"{url} {what}", detail={"server": url, "seconds": round(seconds, 3)})


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None
