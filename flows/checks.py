"""``docmill config check``: try everything that the settings name, all at once, each with its remedy."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable

import httpx

from docmill.checks import Check
from docmill.document_types import available, load_document_type
from docmill.failures import DocmillError, failure_of
from docmill.settings import Settings
from flows.attached_servers import AttachedServer, attached_servers
from flows.endpoints import database_url
from flows.local_prefect import LocalPrefect
from flows.resources import s3_store
from serving.vllm.environment import installed_environments, vllm_python
from serving.vllm.facts import vllm_facts
from serving.vllm.model_checks import version_check
from serving.vllm.preflight import facts_folder
from storage.migrations import needs_upgrade
from storage.queries import LedgerQueries

CHECK_SECONDS = 20.0
VLLM_SECONDS = 120.0
"""The first question to an environment imports all of vLLM; its answer is kept."""
LEAST_FREE_BYTES = 2**30


async def check_all(settings: Settings) -> list[Check]:
    """Try everything; at most some 20 seconds (vLLM, the first time: more). What goes wrong is a failed check."""
    checks: list[tuple[str, Callable[[], Awaitable[Check]]]] = [
        ("data folder", lambda: _data_folder(settings)),
        ("document types", lambda: _document_types(settings)),
        ("postgres", lambda: _postgres(settings)),
        ("object store", lambda: _objects(settings)),
        ("prefect", lambda: _prefect(settings)),
    ]
    if settings.serving.python is not None or installed_environments(settings.data_dir):
        checks.append(("vllm", lambda: _vllm(settings)))
    found = asyncio.gather(*(_tried(what, check) for what, check in checks))
    attached = await attached_checks(settings)
    return [*await found, *attached]


async def attached_checks(settings: Settings) -> list[Check]:
    """One for each server of ``serving.base_urls``."""
    try:
        return list(map(_model_server, await attached_servers(settings)))
    except DocmillError as error:
        return [Check("model servers", "failed", error.message, error.remedy)]


async def _tried(what: str, check: Callable[[], Awaitable[Check]]) -> Check:
    seconds = VLLM_SECONDS if what == "vllm" else CHECK_SECONDS
    try:
        async with asyncio.timeout(seconds):
            return await check()
    except TimeoutError:
        return Check(what, "failed", f"no answer within {seconds:.0f} s", "check its address and that it runs")
    except Exception as error:
        failure = failure_of(error)
        return Check(what, "failed", failure.message, failure.remedy)


async def _data_folder(settings: Settings) -> Check:
    folder = settings.data_dir
    held = folder
    while not held.exists():
        held = held.parent
    free = shutil.disk_usage(held).free
    found = f"{folder}, {free / 2**30:.1f} GiB free"
    if free < LEAST_FREE_BYTES:
        return Check("data folder", "warning", found, "free some space, or point data_dir elsewhere")
    return Check("data folder", "ok", found)


async def _document_types(settings: Settings) -> Check:
    names, wrong = available(settings.pipeline.document_types), []
    for name in names:
        try:
            load_document_type(name, settings.pipeline.document_types)
        except DocmillError as error:
            wrong.append(error.message)
    if wrong:
        return Check("document types", "failed", "; ".join(wrong), "see docs/reference/document-types.md")
    return Check("document types", "ok", ", ".join(names))


async def _postgres(settings: Settings) -> Check:
    url = database_url(settings)
    kind = "yours" if settings.database.url else "embedded"
    if await needs_upgrade(url):
        return Check("postgres", "failed", f"{kind}: its tables are missing or old", "docmill up")
    async with LedgerQueries.connect(url) as queries:
        batches = await queries.batches(1)
    return Check(
        "postgres",
        "ok",
        f"{kind}: " + (f"last batch {batches[0]['created_at']:%Y-%m-%d %H:%M}" if batches else "empty"),
    )


async def _objects(settings: Settings) -> Check:
    store = s3_store(settings)
    try:
        await store.check()
    finally:
        await store.close()
    return Check("object store", "ok", settings.objects.endpoint or "embedded")


async def _prefect(settings: Settings) -> Check:
    prefect = settings.prefect
    api = prefect.api_url or LocalPrefect(settings.data_dir, pool=prefect.work_pool).api_url
    key = prefect.api_key.get_secret_value() if prefect.api_key else None
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx.AsyncClient(headers=headers, timeout=CHECK_SECONDS / 2) as client:
        try:
            (await client.get(f"{api}/health")).raise_for_status()
            answer = await client.post(f"{api}/work_pools/{prefect.work_pool}/workers/filter", json={})
        except httpx.HTTPStatusError as error:
            return Check("prefect", "failed", f"{api} answers {error.response.status_code}", "check prefect.api_key")
        except httpx.HTTPError as error:
            return Check("prefect", "failed", f"{api} does not answer ({type(error).__name__})",
                         "docmill up, or check prefect.api_url")  # fmt: skip
    if answer.status_code == 404:
        return Check("prefect", "warning", f"{api} has no work pool {prefect.work_pool}", "docmill up makes it")
    online = [worker["name"] for worker in answer.json() if worker.get("status") == "ONLINE"]
    if not online:
        return Check("prefect", "warning", f"{api}: no worker of {prefect.work_pool} is online",
                     f"docmill up, or: prefect worker start --pool {prefect.work_pool}")  # fmt: skip
    return Check("prefect", "ok", f"{api}, workers: {', '.join(online)}")


async def _vllm(settings: Settings) -> Check:
    facts = await vllm_facts(vllm_python(settings), facts_folder(settings))
    return version_check(facts)


def _model_server(server: AttachedServer) -> Check:
    what = f"model server {server.base_url}"
    if server.error is not None:
        return Check(what, "failed", server.error, "check serving.base_urls and that the server runs")
    return Check(what, "ok", "serves " + ", ".join(server.models))
