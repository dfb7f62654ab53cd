"""Serve a model through docmill's own supervisor and client on this machine, and compare with vLLM asked directly.

    python benchmarks/gpu_serving.py PROFILE [--levels 8,32,128] [--pages 256] [--crash] [--hang] [--out FILE]

Settings come as always (``DOCMILL_*``, docmill.toml): ``serving.python``, ``serving.models``… For dummy weights:
``DOCMILL_SERVING_EXTRA_ARGUMENTS='["--load-format", "dummy"]'``. Pages are pictures of 1008 x 1288 pixels; answers have
256 tokens. Both clients ask the same server in the same run, turn about; the ratio is docmill's pages/s over those of a
bare HTTP client with the same bodies. ``--crash`` kills the engine under load, ``--hang`` stops it; both count answers.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
from PIL import Image, ImageDraw

from docmill.chat import ChatRequest
from docmill.failures import DocmillError
from docmill.ports import PageImage
from docmill.settings import load_settings
from flows.endpoints import database_url
from flows.model_servers import ModelServer, model_server
from storage.ledger.model_servers import PostgresServerRegistry

WIDTH, HEIGHT, ANSWER = 1008, 1288, 256
PROMPT = "Extract every field of this form as JSON. " * 20
EXTRA = {"ignore_eos": True, "min_tokens": ANSWER}


def picture(number: int) -> bytes:
    """A page of digits as JPEG."""
    draws = random.Random(number)
    page = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw = ImageDraw.Draw(page)
    for y in range(20, HEIGHT - 18, 26):
        draw.text((20, y), " ".join(f"{draws.randrange(1 << 24):06x}" for _ in range(18)), fill=0)
    held = io.BytesIO()
    page.save(held, "JPEG", quality=85)
    return held.getvalue()


def request(number: int, data: bytes) -> ChatRequest:
    """One page's request; the number keeps the prefix cache out."""
    image = PageImage(data, "image/jpeg", WIDTH, HEIGHT)
    return ChatRequest(instruction=f"{number} {PROMPT}", images=(image,), max_tokens=ANSWER, extra=EXTRA)


async def through_docmill(server: ModelServer, pages: list[bytes], first: int, level: int) -> dict[str, Any]:
    """Ask for every page by docmill's client."""
    gate, taken, failed = asyncio.Semaphore(level), [], []

    async def one(number: int, data: bytes) -> None:
        async with gate:
            began = time.monotonic()
            try:
                answer = await server.chat.ask(request(number, data))
                taken.append((time.monotonic() - began, answer.sends))
            except DocmillError as error:
                failed.append(error.code)

    began = time.monotonic()
    await asyncio.gather(*(one(first + i, data) for i, data in enumerate(pages)))
    return summary(began, [seconds for seconds, _ in taken], len(pages), failed, sum(s - 1 for _, s in taken))


async def directly(url: str, name: str, pages: list[bytes], first: int, level: int) -> dict[str, Any]:
    """Ask for every page by a bare HTTP client."""
    gate, taken, failed = asyncio.Semaphore(level), [], []
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=600, trust_env=False, limits=limits) as client:

        async def one(number: int, data: bytes) -> None:
            async with gate:
                began = time.monotonic()
                held = "data:image/jpeg;base64," + base64.b64encode(data).decode()
                content = [
                    {"type": "text", "text": f"{number} {PROMPT}"},
                    {"type": "image_url", "image_url": {"url": held}},
                ]
                body = {"model": name, "temperature": 0, "max_tokens": ANSWER, **EXTRA}
                asked = await client.post(
                    f"{url}/v1/chat/completions", json=body | {"messages": [{"role": "user", "content": content}]}
                )
                if asked.is_success:
                    taken.append(time.monotonic() - began)
                else:
                    failed.append(str(asked.status_code))

        began = time.monotonic()
        await asyncio.gather(*(one(first + i, data) for i, data in enumerate(pages)))
    return summary(began, taken, len(pages), failed, 0)


def summary(began: float, taken: list[float], asked: int, failed: list[str], again: int) -> dict[str, Any]:
    """Figures of one round."""
    seconds = time.monotonic() - began
    return {
        "asked": asked,
        "answered": len(taken),
        "failed": failed,
        "sent_again": again,
        "seconds": round(seconds, 2),
        "pages_per_second": round(len(taken) / seconds, 2),
        "p50_seconds": round(statistics.median(taken), 2) if taken else None,
    }


def engines(pid: int) -> list[psutil.Process]:
    """The engine processes below the server's first process."""
    below = psutil.Process(pid).children(recursive=True)
    return [each for each in below if "EngineCore" in " ".join([each.name(), *each.cmdline()])]


async def disturbed(
    registry: PostgresServerRegistry, server: ModelServer, pages: list[bytes], first: int, number: signal.Signals
) -> dict[str, Any]:
    """Pages under way while the engine gets a signal; how they and the server fared."""
    record = (await registry.servers(profile=server.profile))[0]
    before = len(await registry.restarts(record.id))
    asking = asyncio.create_task(through_docmill(server, pages, first, 32))
    await asyncio.sleep(3)
    assert record.pid is not None
    struck = engines(record.pid)
    for each in struck:
        each.send_signal(number)
    began = time.monotonic()
    while len(await registry.restarts(record.id)) == before:  # noqa: ASYNC110
        await asyncio.sleep(0.5)
    seen = time.monotonic() - began
    while (await registry.server(record.id)).state != "ready":  # noqa: ASYNC110
        await asyncio.sleep(0.5)
    ready = time.monotonic() - began
    result = await asking
    latest = (await registry.restarts(record.id))[0]
    return {
        "signal": number.name,
        "engines": len(struck),
        "seen_after_seconds": round(seen, 1),
        "ready_after_seconds": round(ready, 1),
        "restart": {"code": latest.code, "requests_in_flight": latest.requests, "message": latest.message[:200]},
        **result,
    }


def docmill(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run([sys.executable, "-m", "console", *arguments], capture_output=True, text=True)


async def main() -> None:
    """Run it all and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile")
    parser.add_argument("--levels", default="8,32,128")
    parser.add_argument("--pages", type=int, default=256)
    parser.add_argument("--gpus", default="1xH200", help="what the plan is made for")
    parser.add_argument("--serve", default="", help="further arguments of docmill serve")
    parser.add_argument("--crash", action="store_true")
    parser.add_argument("--hang", action="store_true")
    parser.add_argument("--sleep", action="store_true", help="wait until it sleeps, then wake it by asking")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found: dict[str, Any] = {"profile": given.profile, "pages": given.pages}

    def tell(what: str, value: Any) -> None:
        found[what] = value
        print(f"{what}: {json.dumps(value, default=str)}", flush=True)
        if given.out:
            given.out.write_text(json.dumps(found, default=str, indent=1))

    checks = docmill("preflight", given.profile, "--json")
    rows = json.loads(checks.stdout) if checks.stdout else []
    tell("preflight", [f"{row['what']}: {row['state']}: {row['found']}" for row in rows] or checks.stderr[-2000:])
    planned = docmill("plan", given.profile, "--json", *(["--gpus", given.gpus] if given.gpus else []))
    plan = json.loads(planned.stdout) if planned.stdout else {"error": planned.stderr}
    tell("plan", {key: value for key, value in plan.items() if key != "command"})
    began = time.monotonic()
    served = docmill("serve", given.profile, "--detach", *given.serve.split())
    said = served.stdout[-1500:] + served.stderr[-3000:]
    tell("serve", {"rc": served.returncode, "seconds": round(time.monotonic() - began, 1), "said": said})
    if served.returncode:
        sys.exit(1)
    with ProcessPoolExecutor(min(8, os.cpu_count() or 1)) as drawing:
        pages = list(drawing.map(picture, range(given.pages), chunksize=8))
    try:
        await measure(given, plan, pages, tell)
        if given.sleep:
            tell("sleep", await slept(given.profile, pages[0]))
    finally:
        began = time.monotonic()
        stopped = docmill("stop", given.profile, "--force")
        said = stopped.stdout[-500:] + stopped.stderr[-500:]
        tell("stop", {"seconds": round(time.monotonic() - began, 1), "said": said, "left_on_gpu": on_gpu()})


async def measure(
    given: argparse.Namespace, plan: dict[str, Any], pages: list[bytes], tell: Callable[[str, Any], None]
) -> None:
    """The server is up: speeds, then the disturbances."""
    url = database_url(load_settings())
    async with PostgresServerRegistry.connect(url) as registry, model_server(given.profile) as server:
        record = (await registry.servers(profile=server.profile))[0]
        seen, predicted = record.kv_cache_tokens, plan.get("kv_cache_tokens")
        ratio = round(predicted / seen, 4) if seen and predicted else None
        tell("kv_cache_tokens", {"vllm": seen, "plan": predicted, "plan_over_vllm": ratio})
        tell("row", {"vllm": record.vllm_version, "gpus": record.gpus, "base_url": record.base_url})
        number = 64
        await through_docmill(server, pages[:32], 0, 32)
        await directly(record.base_url, record.served_name, pages[:32], 32, 32)
        for level in map(int, given.levels.split(",")):
            some = pages[: max(32, min(given.pages, level * 4))]
            turns = []
            for _ in range(2):
                raw = await directly(record.base_url, record.served_name, some, number, level)
                own = await through_docmill(server, some, number + len(some), level)
                number += 2 * len(some)
                ratio = round(own["pages_per_second"] / raw["pages_per_second"], 3)
                turns.append({"directly": raw, "docmill": own, "ratio": ratio})
            tell(f"concurrency {level}", turns)
        await asyncio.sleep(16)
        tell("metrics", (await registry.server(record.id)).metrics)
        if given.crash:
            tell("crash", await disturbed(registry, server, pages[:96], number, signal.SIGKILL))
        if given.hang:
            tell("hang", await disturbed(registry, server, pages[:96], number + 96, signal.SIGSTOP))


async def slept(profile: str, page: bytes) -> dict[str, Any]:
    """Nobody holds the server: it goes to sleep (serving.idle_sleep_seconds) and wakes for the next one who asks."""
    began, awake = time.monotonic(), on_gpu()
    async with PostgresServerRegistry.connect(database_url(load_settings())) as registry:
        while (await registry.servers())[0].state != "sleeping":  # noqa: ASYNC110
            await asyncio.sleep(0.5)
        after, asleep = time.monotonic() - began, on_gpu()
    began = time.monotonic()
    async with model_server(profile) as server:
        woken = time.monotonic() - began
        await server.chat.ask(request(10**6, page))
    answered = time.monotonic() - began
    return {
        "asleep_after_seconds": round(after, 1), "gpu_awake": awake, "gpu_asleep": asleep,
        "woken_seconds": round(woken, 1), "answered_seconds": round(answered, 1),
    }  # fmt: skip


def on_gpu() -> list[str]:
    """Processes that hold a GPU's memory; nothing where there is no driver."""
    try:
        asked = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader"]
        return subprocess.run(asked, capture_output=True, text=True).stdout.split("\n")[:-1]
    except FileNotFoundError:
        return []


if __name__ == "__main__":
    asyncio.run(main())
