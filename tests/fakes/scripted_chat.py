"""An OpenAI-compatible server in this process that does what a test tells it to: real HTTP on a real socket."""

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Sent:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Exchange:
    """One request and the way to answer it."""

    sent: Sent
    writer: asyncio.StreamWriter
    server: "ScriptedChat"

    async def respond(self, status: int, body: bytes | str | dict, *, kind: str = "application/json", **headers: str):
        if isinstance(body, dict):
            body = json.dumps(body)
        data = body.encode() if isinstance(body, str) else body
        head = [f"HTTP/1.1 {status} Whatever", f"content-type: {kind}", f"content-length: {len(data)}"]
        head += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join([*head, "", ""]).encode() + data)
        await self.writer.drain()

    async def begin_stream(self) -> None:
        self.writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        await self.writer.drain()

    async def write(self, data: bytes) -> None:
        self.writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await self.writer.drain()

    async def event(self, event: dict | str) -> None:
        text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        await self.write(f"data: {text}\n\n".encode())

    async def piece(self, text: str, *, finish: str | None = None, **more: Any) -> None:
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish, **more}
        await self.event({"id": "chatcmpl-1", "model": self.server.models[0], "choices": [choice]})

    async def end_stream(self) -> None:
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    def reset(self) -> None:
        """End the connection as a killed process does."""
        _reset(self.writer)

    async def gone(self) -> None:
        """Wait until the client has gone away."""
        await self.server.stopping.wait()


Behaviour = Callable[[Exchange], Awaitable[None]]


def saying(text: str, *, finish: str = "stop", usage: dict[str, int] | None = None) -> Behaviour:
    """A whole streamed answer, a word an event."""

    async def behave(exchange: Exchange) -> None:
        await exchange.begin_stream()
        await exchange.piece("")
        for word in text.split(" "):
            await exchange.piece(word if word == text.split(" ")[0] else f" {word}")
        await exchange.piece("", finish=finish)
        counts = usage or {"prompt_tokens": 7, "completion_tokens": len(text.split()), "total_tokens": 9}
        await exchange.event({"id": "chatcmpl-1", "model": exchange.server.models[0], "choices": [], "usage": counts})
        await exchange.event("[DONE]")
        await exchange.end_stream()

    return behave


def answering(status: int, body: bytes | str | dict, *, kind: str = "application/json", **headers: str) -> Behaviour:
    """An answer of that status."""
    return lambda exchange: exchange.respond(status, body, kind=kind, **headers)


@dataclass
class ScriptedChat:
    """The server. ``script`` holds what it does with the next requests for an answer, then it says ``ok``."""

    models: tuple[str, ...] = ("scripted",)
    script: list[Behaviour] = field(default_factory=list)
    default: Behaviour = field(default_factory=lambda: saying("ok"))
    sent: list[Sent] = field(default_factory=list)
    health_status: int = 200
    models_behaviour: Behaviour | None = None
    health_behaviour: Behaviour | None = None
    port: int = 0
    most_at_once: int = 0
    checks: int = 0

    def __post_init__(self) -> None:
        self.stopping = asyncio.Event()
        self.arrived = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._now = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Listen; on the same port as before after a stop."""
        self.stopping.clear()
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, limit=2**24)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Die: connections are reset and refused from now on."""
        self.die()
        for _ in range(5):  # connections that were accepted just before get to where they can be closed
            await asyncio.sleep(0)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def die(self) -> None:
        """As a killed process does: every connection is reset, new ones are refused."""
        self.stopping.set()
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            _reset(writer)

    async def __aenter__(self) -> "ScriptedChat":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def received(self, count: int) -> None:
        """Wait until so many requests for an answer have come."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.sent) >= count)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.stopping.is_set():  # accepted just before the end
            _reset(writer)
            return
        self._writers.add(writer)
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (sent := await _request(reader)) is not None:
                await self._handle(Exchange(sent, writer, self))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()
            with contextlib.suppress(Exception):
                await writer.wait_closed()

    async def _handle(self, exchange: Exchange) -> None:
        if exchange.sent.path == "/health":
            self.checks += 1
            behave = self.health_behaviour or answering(self.health_status, "")
        elif exchange.sent.path == "/v1/models":
            listed = {"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]}
            behave = self.models_behaviour or answering(200, listed)
        elif exchange.sent.path == "/v1/chat/completions":
            behave = self.script.pop(0) if self.script else self.default
            async with self.arrived:
                self.sent.append(exchange.sent)
                self.arrived.notify_all()
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            try:
                await behave(exchange)
            finally:
                self._now -= 1
            return
        else:
            behave = answering(404, {"detail": "Not Found"})
        await behave(exchange)


def _reset(writer: asyncio.StreamWriter) -> None:
    """RST instead of FIN."""
    if not writer.transport.is_closing():
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what another task brings about."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  (what it looks at has no event)
            await asyncio.sleep(0.005)


async def _request(reader: asyncio.StreamReader) -> Sent | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Sent(head[0].split(" ")[1], headers, body)
