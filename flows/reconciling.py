"""Rows of model servers against reality: what is found, and what is mended."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from uuid import NAMESPACE_URL, UUID, uuid5

import httpx

from docmill.model_servers import ServerRecord, ServerRegistry, ServerState
from docmill.settings import Settings
from flows.server_access import reachable
from flows.server_ends import end_lost
from serving.supervision.orphans import end_orphans
from storage.embedded.state import read_state, write_state

HEALTH_SECONDS = 10.0
REMEMBERED = 500
TOLD_FILE = Path("model-servers") / "failures-told.json"


@dataclass(frozen=True, slots=True)
class Finding:
    """One server, or one thing that was left of a server.

    Attributes:
        state: ``ok``; ``mended``: it is as it should be now; ``trouble``: its supervisor or somebody has to see to it.
    """

    profile: str
    server: str
    host: str
    state: Literal["ok", "mended", "trouble"]
    found: str


async def reconcile(registry: ServerRegistry) -> list[Finding]:
    """Bring rows and processes in line, as far as that can be done from this host.

    Leases that ran out are dropped; rows whose supervisor is gone become ``failed``; processes of this host that
    nobody looks after are ended; servers that say they are ready are asked whether they are.
    """
    findings = [_mended(each, each.message or "its supervisor was gone") for each in await registry.reap()]
    live = await registry.servers()
    for each in live:
        if await end_lost(registry, each):
            findings.append(_mended(each, f"its supervisor on {each.host} was gone"))
    gone = {finding.server for finding in findings}
    live = [each for each in live if str(each.id) not in gone]
    orphans = await asyncio.to_thread(end_orphans, {each.id for each in live})
    if orphans:
        told = f"ended {len(orphans)} processes that nobody looked after: {', '.join(map(str, orphans))}"
        findings.append(Finding("", "", socket.gethostname(), "mended", told))
    async with httpx.AsyncClient(trust_env=False, timeout=HEALTH_SECONDS) as client:
        findings += await asyncio.gather(*(_look(client, each) for each in live))
    return findings


async def _look(client: httpx.AsyncClient, record: ServerRecord) -> Finding:
    def finding(state: Literal["ok", "trouble"], found: str) -> Finding:
        return Finding(record.profile, str(record.id), record.host, state, found)

    if record.state is not ServerState.READY:
        return finding("ok", record.phase or str(record.state))
    if not reachable(record):
        return finding("ok", "ready, and only its own host can ask it")
    try:
        answer = await client.get(f"{record.base_url}/health")
    except httpx.HTTPError as error:
        return finding("trouble", f"ready, but /health does not answer ({type(error).__name__})")
    if not answer.is_success:
        return finding("trouble", f"ready, but /health answers {answer.status_code}")
    return finding("ok", "ready")


def _mended(record: ServerRecord, found: str) -> Finding:
    return Finding(record.profile, str(record.id), record.host, "mended", found)


async def untold_failures(settings: Settings, registry: ServerRegistry) -> list[ServerRecord]:
    """Failed rows that were not told yet from this data folder; from now on they are."""
    path = settings.data_dir / TOLD_FILE
    held = await asyncio.to_thread(read_state, path)
    told = {str(each) for each in held.get("told", ())}
    failed = [each for each in await registry.servers(live=False) if each.state is ServerState.FAILED][:REMEMBERED]
    new = [each for each in failed if str(each.id) not in told]
    if new:
        await asyncio.to_thread(write_state, path, {"told": [str(each.id) for each in failed]})
    return new


def event_id(server_id: UUID) -> UUID:
    """Of the event that tells a server's failure: the same from whichever host it is told."""
    return uuid5(NAMESPACE_URL, f"docmill:server-failed:{server_id}")
