"""A model server that speaks vLLM's protocol, starts in a fraction of a second, and fails on command.

As ``Launch.command`` (standard library only, any interpreter)::

    (sys.executable, "-S", ".../tests/fakes/scripted_vllm.py", "--host", "127.0.0.1", "--port", "8000",
     "--served-model-name", "qwen", "--script", "control.json")

Command line: vLLM's own (``--model --served-model-name --host --port --max-model-len --tensor-parallel-size --api-key
--enable-sleep-mode …``; further flags are taken and ignored, and so is ``-m MODULE`` in front, so that a file
``#!/bin/sh\\nexec PYTHON -S scripted_vllm.py "$@"`` may stand for ``serving.python``). ``VLLM_API_KEY`` guards /v1 and
``VLLM_SERVER_DEV_MODE=1`` with ``--enable-sleep-mode`` gives /sleep, as in vLLM.

Like the real one it is several processes: the API server; below it an engine core that produces the tokens; below that
one worker for each of ``--tensor-parallel-size`` above 1 (workers outlive the engine: whoever ends the server must end
them). kill -9 of the engine core ends the API server; SIGSTOP of it stops the tokens and freezes the gauges while
/health stays 200. ``VLLM::EngineCore`` and ``VLLM::Worker`` stand in their command lines.

The script (a JSON file, named by ``--script`` or in ``SCRIPTED_VLLM``) is read at every start; a list gives each start
its own entry (the last one repeats; starts are counted in ``FILE.starts``, one pid a line). Keys of an entry:

    start          "ok" | one of START_FAILURES: the log says so and the process exits 1
    exit_code      with start: another exit status; negative: dies of that signal
    load_seconds   the time from listening to healthy (0)
    never_ready    /health never answers 200
    served_name    another name than asked for
    refuse_images  pictures are answered 400
    ignore_sigterm API server, engine core and workers ignore SIGTERM
    version        "0.24" | "0.32" (its metrics' names and log lines; 0.32)
    token_seconds  per token (0.001)
    tokens         of an answer at most (16)
    answers        texts given in turn (a JSON schema in the request overrules them)
    no_sleep       /sleep is 404 ; sleep_fails: it is 500 ; wake_fails: /wake_up is 500
    kv_cache_tokens as in the log (347152)

At any time: ``POST /__fault {"fault": NAME, …}``:

    crash       the API server exits with "exit_code" (1), after writing "log" to its log
    oom         the engine dies of a CUDA out-of-memory error
    hang        the engine core stops itself (SIGSTOP); "resume" cannot be answered by it: send SIGCONT
    deaf        nothing but /__fault and /health is answered any more ("undo": true ends it)
    status      the next "count" (1) chat requests are answered "status" ("retry_after", "body")
    slow        "token_seconds" from now on
    gauges      {"running": N, "waiting": N} are shown whatever is true

``GET /__state`` → pid, engine_pid, worker_pids, sleeping, requests (chat requests so far), api_key (whether it has
one), environment (names of its variables).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from scripted_engine import PROGRAM, be_engine, be_worker
from scripted_http import Answer, event, refusal, requests, send, until_done
from scripted_words import START_FAILURES, instance, log, metrics_text, pieces, start_lines


class Server:
    """The API server."""

    def __init__(self, options: argparse.Namespace, script: dict[str, Any]) -> None:
        self.options = options
        self.script = script
        self.name = script.get("served_name") or options.served_model_name or options.model
        self.version: str = script.get("version", "0.32")
        self.key = options.api_key or os.environ.get("VLLM_API_KEY")
        self.sleeps = os.environ.get("VLLM_SERVER_DEV_MODE") == "1" and options.enable_sleep_mode
        self.state: dict[str, int] = {"running": 0, "waiting": 0, "prompt": 0, "generated": 0, "succeeded": 0}
        self.shown: dict[str, int] = {}
        self.streams: dict[str, asyncio.Queue[int]] = {}
        self.workers: list[int] = []
        self.healthy = False
        self.sleeping = False
        self.hearing = asyncio.Event()
        self.hearing.set()
        self.requests = 0
        self.failures: list[dict[str, Any]] = []
        self.engine: asyncio.subprocess.Process | None = None

    # --- life -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        if not self.script.get("ignore_sigterm"):
            loop.add_signal_handler(signal.SIGTERM, stop.set)
            loop.add_signal_handler(signal.SIGINT, stop.set)
        listener = await asyncio.start_server(self._serve, self.options.host, self.options.port)
        starting = asyncio.ensure_future(self._start())
        await stop.wait()
        log("[shutdown] API server: shutdown triggered")
        starting.cancel()
        listener.close()
        if self.engine is not None:
            with contextlib.suppress(ProcessLookupError):
                self.engine.kill()
        os._exit(0)

    async def _start(self) -> None:
        script = self.script
        ignore = ["--ignore"] if script.get("ignore_sigterm") else []
        workers = self.options.tensor_parallel_size if self.options.tensor_parallel_size > 1 else 0
        self.engine = await asyncio.create_subprocess_exec(
            sys.executable, "-S", PROGRAM, "VLLM::EngineCore", "--workers", str(workers), *ignore,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        await self._tell(pace=script.get("token_seconds", 0.001))
        reading = asyncio.ensure_future(self._read_engine())
        await self._pretend_to_load()
        failure = script.get("start", "ok")
        if failure != "ok":
            log(f"EngineCore failed to start.\nTraceback (most recent call last):\n{START_FAILURES[failure]}", "ERROR")
            log("RuntimeError: Engine core initialization failed. See root cause above.", "ERROR")
            code = script.get("exit_code", 1)
            if code < 0:
                os.kill(os.getpid(), -code)
            os._exit(code)
        self.healthy = not script.get("never_ready")
        if self.healthy:
            log("Application startup complete.")
        await reading

    async def _pretend_to_load(self) -> None:
        lines = start_lines(self.version, self.options.model, self.script.get("kv_cache_tokens", 347152))
        pause = self.script.get("load_seconds", 0) / len(lines)
        for line in lines:
            if line.startswith("\r"):
                sys.stderr.write(line)
                sys.stderr.flush()
            else:
                log(line, name="EngineCore")
            if pause:
                await asyncio.sleep(pause)

    async def _read_engine(self) -> None:
        assert self.engine is not None
        assert self.engine.stdout is not None
        while line := await self.engine.stdout.readline():
            said = json.loads(line)
            self.state = said["state"]
            self.workers = said.get("workers", self.workers)
            if said.get("id") in self.streams:
                self.streams[said["id"]].put_nowait(said["token"])
        log("[shutdown] MPClient: engine core exited unexpectedly; starting cleanup", "ERROR")
        os._exit(1)

    async def _tell(self, **order: Any) -> None:
        assert self.engine is not None
        assert self.engine.stdin is not None
        self.engine.stdin.write(json.dumps(order).encode() + b"\n")
        await self.engine.stdin.drain()

    # --- HTTP -----------------------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            async for method, path, headers, body in requests(reader):
                if path not in ("/__fault", "/health", "/__state"):
                    await self.hearing.wait()
                try:
                    await until_done(self._route(method, path, headers, body, writer), reader, writer)
                except Answer as answer:
                    await send(answer, writer)
        writer.close()

    async def _route(
        self, method: str, path: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter
    ) -> None:
        if path.startswith("/v1") and self.key and headers.get("authorization") != f"Bearer {self.key}":
            raise Answer(401, {"error": "Unauthorized"})
        if path == "/__fault":
            raise await self._fault(json.loads(body))
        if path == "/__state":
            raise Answer(200, self._told())
        if path == "/health":
            raise Answer(200 if self.healthy else 503)
        if not self.healthy:
            raise Answer(503)
        if path == "/metrics":
            raise Answer(
                200,
                metrics_text(self.version, self.name, {**self.state, **self.shown}).encode(),
                {"content-type": "text/plain; version=0.0.4"},
            )
        if path == "/v1/models":
            raise Answer(200, {"object": "list", "data": [{"id": self.name, "object": "model", "max_model_len": 8192}]})
        if self.sleeps and path in ("/sleep", "/wake_up", "/is_sleeping"):
            raise self._sleep(path)
        if path == "/v1/chat/completions" and method == "POST":
            await self._chat(json.loads(body), writer)
            return
        raise Answer(404, {"detail": "Not Found"})

    def _told(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(), "engine_pid": self.engine.pid if self.engine else None, "worker_pids": self.workers,
            "sleeping": self.sleeping, "requests": self.requests, "api_key": self.key is not None,
            "environment": sorted(os.environ),
        }  # fmt: skip

    async def _fault(self, order: dict[str, Any]) -> Answer:
        fault = order["fault"]
        if fault == "crash":
            log(order.get("log", "the script says crash"), "ERROR")
            os._exit(order.get("exit_code", 1))
        elif fault in ("hang", "oom"):
            await self._tell(**{fault: True})
        elif fault == "deaf":
            if order.get("undo"):
                self.hearing.set()
            else:
                self.hearing.clear()
        elif fault == "status":
            self.failures += [order] * order.get("count", 1)
        elif fault == "slow":
            await self._tell(pace=order["token_seconds"])
        elif fault == "gauges":
            self.shown = {name: order[name] for name in ("running", "waiting") if name in order}
        else:
            return refusal(400, "BadRequestError", f"no fault {fault}")
        return Answer(200, {})

    def _sleep(self, path: str) -> Answer:
        if path == "/is_sleeping":
            return Answer(200, {"is_sleeping": self.sleeping})
        word = "sleep" if path == "/sleep" else "wake"
        if self.script.get(f"no_{word}"):
            return Answer(404, {"detail": "Not Found"})
        if self.script.get(f"{word}_fails"):
            return refusal(500, "InternalServerError", "it fails")
        self.sleeping = word == "sleep"
        return Answer(200, b"" if self.version == "0.24" else {"status": "sleeping", "level": 1})

    # --- chat -----------------------------------------------------------------------------------------------------

    async def _chat(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        self.requests += 1
        if self.failures:
            failure = self.failures.pop(0)
            after = {"retry-after": str(failure["retry_after"])} if "retry_after" in failure else None
            raise Answer(failure["status"], failure.get("body", {"error": {"message": "as scripted"}}), after)
        if request.get("model") != self.name:
            raise refusal(404, "NotFoundError", f"The model `{request.get('model')}` does not exist.")
        parts = [p for m in request["messages"] if isinstance(m["content"], list) for p in m["content"]]
        if self.script.get("refuse_images") and any(part.get("type") == "image_url" for part in parts):
            raise refusal(400, "BadRequestError", "At most 0 image(s) may be provided in one prompt.")
        if self.sleeping:
            raise refusal(500, "InternalServerError", "the engine is asleep")
        limit = request.get("max_completion_tokens") or request.get("max_tokens") or 10**6
        text, wanted = self._text(request)
        tokens = min(limit, wanted)
        prompt = 10 + 50 * len(parts)
        key = f"chatcmpl-{self.requests}"
        reason = "length" if limit < wanted else "stop"
        usage = {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}
        common = {"id": key, "created": int(time.time()), "model": self.name}
        queue: asyncio.Queue[int] = asyncio.Queue()
        self.streams[key] = queue
        try:
            await self._tell(id=key, tokens=tokens, prompt=prompt)
            if request.get("stream"):
                await self._stream(pieces(text, wanted), tokens, reason, usage, common, queue, request, writer)
                return
            while await queue.get() < tokens:
                pass
        except asyncio.CancelledError:
            await self._tell(abort=key)
            raise
        finally:
            del self.streams[key]
        said = "".join(pieces(text, wanted)[:tokens])
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": reason}
        raise Answer(200, {**common, "object": "chat.completion", "choices": [choice], "usage": usage})

    def _text(self, request: dict[str, Any]) -> tuple[str, int]:
        """What to say, and in how many tokens."""
        wanted = self.script.get("tokens", 16)
        form = request.get("response_format") or {}
        if form.get("type") == "json_schema":
            return json.dumps(instance(form["json_schema"]["schema"])), wanted
        answers = self.script.get("answers")
        return (answers[(self.requests - 1) % len(answers)] if answers else "A frame on a white ground."), wanted

    async def _stream(
        self, pieces: list[str], tokens: int, reason: str, usage: dict[str, int], common: dict[str, Any],
        queue: asyncio.Queue[int], request: dict[str, Any], writer: asyncio.StreamWriter,
    ) -> None:  # fmt: skip
        def chunk(delta: dict[str, str], finish: str | None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return event(json.dumps({**common, "object": "chat.completion.chunk", "choices": [choice]}))

        writer.write(b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        writer.write(chunk({"role": "assistant", "content": ""}, None))
        number = 0
        while number < tokens:
            number = await queue.get()
            writer.write(chunk({"content": pieces[number - 1]}, reason if number == tokens else None))
            await writer.drain()
        if (request.get("stream_options") or {}).get("include_usage"):
            last = {**common, "object": "chat.completion.chunk", "choices": [], "usage": usage}
            writer.write(event(json.dumps(last)))
        writer.write(event("[DONE]") + b"0\r\n\r\n")
        await writer.drain()


def _entry(path: str | None) -> dict[str, Any]:
    """This start's part of the script."""
    if not path:
        return {}
    script = json.loads(Path(path).read_text(encoding="utf-8"))
    with Path(f"{path}.starts").open("a+", encoding="utf-8") as starts:
        starts.write(f"{os.getpid()}\n")
        starts.seek(0)
        number = len(starts.readlines())
    entries = script if isinstance(script, list) else [script]
    found: dict[str, Any] = entries[min(number, len(entries)) - 1]
    return found


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    if arguments[:1] in (["VLLM::EngineCore"], ["VLLM::Worker"]):
        parser.add_argument("--workers", type=int, default=0)
        parser.add_argument("--ignore", action="store_true")
        options = parser.parse_args(arguments[1:])
        if arguments[0] == "VLLM::EngineCore":
            be_engine(options)
        else:
            be_worker(options.ignore)
    if arguments[:1] == ["-m"]:
        arguments = arguments[2:]
    parser.add_argument("--model", default="scripted")
    parser.add_argument("--served-model-name")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--api-key")
    parser.add_argument("--tensor-parallel-size", type=int, default=1)
    parser.add_argument("--enable-sleep-mode", action="store_true")
    parser.add_argument("--script", default=os.environ.get("SCRIPTED_VLLM"))
    options, _ = parser.parse_known_args(arguments)
    script = _entry(options.script)
    if script.get("ignore_sigterm"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    asyncio.run(Server(options, script).run())


if __name__ == "__main__":
    main(sys.argv[1:])
