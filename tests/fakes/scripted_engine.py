"""The engine core and the workers of the scripted model server (scripted_vllm.py)."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from scripted_words import START_FAILURES, log

PROGRAM = str(Path(__file__).with_name("scripted_vllm.py"))


def be_worker(ignore: bool) -> None:
    if ignore:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        signal.pause()


def be_engine(options: argparse.Namespace) -> None:
    """Reads requests ``{"id", "tokens", "prompt"}`` from standard input, writes a line for each token and state."""
    if options.ignore:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    flags = ["--ignore"] if options.ignore else []
    workers = [
        subprocess.Popen([sys.executable, "-S", PROGRAM, "VLLM::Worker", *flags], stdin=subprocess.DEVNULL, stdout=2)
        for _ in range(options.workers)
    ]
    asyncio.run(_produce([worker.pid for worker in workers]))


async def _produce(workers: list[int]) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    open_requests: dict[str, int] = {}
    pace = {"seconds": 0.001}
    totals = {"prompt": 0, "generated": 0, "succeeded": 0}

    def say(**facts: Any) -> None:
        state = {"running": len(open_requests), "waiting": 0, **totals}
        os.write(1, json.dumps({**facts, "state": state}).encode() + b"\n")

    async def work(key: str, tokens: int, prompt: int) -> None:
        open_requests[key] = tokens
        say()
        await asyncio.sleep(pace["seconds"])
        totals["prompt"] += prompt
        for number in range(1, tokens + 1):
            if number > 1:
                await asyncio.sleep(pace["seconds"])
            if key not in open_requests:
                break
            totals["generated"] += 1
            if number == tokens:
                del open_requests[key]
                totals["succeeded"] += 1
            say(id=key, token=number)

    say(workers=workers)
    tasks = set()
    while line := await reader.readline():
        order = json.loads(line)
        if order.get("hang"):
            os.kill(os.getpid(), signal.SIGSTOP)
        elif order.get("oom"):
            log(START_FAILURES["oom"], "ERROR", "EngineCore")
            os._exit(1)
        elif "pace" in order:
            pace["seconds"] = order["pace"]
        elif "abort" in order:
            open_requests.pop(order["abort"], None)
            say()
        else:
            tasks.add(asyncio.ensure_future(work(order["id"], order["tokens"], order["prompt"])))
    os._exit(0)
