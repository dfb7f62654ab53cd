"""Servers that others run, asked now how they are."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Literal

from docmill.failures import DocmillError
from docmill.launching import Endpoint
from docmill.settings import Settings
from serving.chat.attaching import attached_endpoints
from serving.chat.health import alive, http_client, listed_models
from serving.supervision.metrics import scrape

ASK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class AttachedServer:
    """How it answered.

    Attributes:
        models: the names that it serves.
        error: what is wrong with an unreachable one.
        metrics: as in the rows of our own servers; empty where it has none.
    """

    base_url: str
    state: Literal["attached", "unreachable"]
    models: tuple[str, ...] = ()
    error: str | None = None
    metrics: dict[str, Any] = field(default_factory=dict)


async def attached_servers(settings: Settings) -> list[AttachedServer]:
    """Those of ``serving.base_urls``, in their order; in a few seconds at most.

    Raises:
        ConfigurationError: an address is none.
    """
    key = settings.serving.api_key
    endpoints = attached_endpoints(settings.serving.base_urls, key.get_secret_value() if key else None)
    return list(await asyncio.gather(*map(_look, endpoints)))


async def _look(endpoint: Endpoint) -> AttachedServer:
    try:
        async with http_client(timeout=ASK_SECONDS) as client:
            await alive(client, endpoint)
            models = await listed_models(client, endpoint)
    except DocmillError as error:
        return AttachedServer(endpoint.base_url, "unreachable", error=error.message)
    try:
        metrics = (await scrape(endpoint, timeout_seconds=ASK_SECONDS)).as_row()
    except DocmillError:
        metrics = {}
    return AttachedServer(endpoint.base_url, "attached", models, metrics=metrics)
