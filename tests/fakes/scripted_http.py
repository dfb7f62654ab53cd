"""Just enough HTTP/1.1 for the scripted model server (scripted_vllm.py): keep-alive, JSON, server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Any


class Answer(Exception):
    """Ends the treatment of a request with this answer."""

    def __init__(self, status: int, body: Any = b"", headers: dict[str, str] | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.headers = {"content-type": "application/json", **(headers or {})}


def refusal(status: int, kind: str, message: str) -> Answer:
    return Answer(status, {"error": {"message": message, "type": kind, "param": None, "code": status}})


async def requests(reader: asyncio.StreamReader) -> AsyncIterator[tuple[str, str, dict[str, str], bytes]]:
    """(method, path without query, headers, body) of one request after another."""
    while True:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *rest = head.rstrip("\r\n").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        yield method, target.partition("?")[0], headers, body


async def send(answer: Answer, writer: asyncio.StreamWriter) -> None:
    """Write a whole answer."""
    headers = {**answer.headers, "content-length": str(len(answer.body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {answer.status} X\r\n{lines}\r\n".encode() + answer.body)
    await writer.drain()


def event(data: str) -> bytes:
    """A server-sent event as a chunk of a chunked answer."""
    line = f"data: {data}\n\n".encode()
    return f"{len(line):x}\r\n".encode() + line + b"\r\n"


async def until_done(
    work: Coroutine[Any, Any, None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Do the work; a caller that hangs up cancels it (ConnectionResetError), as in vLLM."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_hangs_up(reader, writer))
    await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
    gone.cancel()
    if not task.done():
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise ConnectionResetError
    await task


async def _hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while not reader.at_eof() and not writer.is_closing():  # noqa: ASYNC110 - a StreamReader tells nobody
        await asyncio.sleep(0.01)
