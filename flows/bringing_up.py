"""Everything that must be there before a flow can run: embedded servers, tables, deployments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from docmill.settings import Settings
from flows.deployments import register_deployments
from flows.endpoints import database_url, point_prefect
from flows.stack import Stack
from storage import migrations


def stack_of(settings: Settings) -> Stack:
    """The local stack that the settings leave to docmill."""
    return Stack(
        settings.data_dir,
        postgres=settings.database.url is None,
        objects=settings.objects.endpoint is None,
        prefect=settings.prefect.api_url is None,
        database_url=settings.database.url.get_secret_value() if settings.database.url else None,
        binaries=settings.database.binaries,
        buckets=(settings.objects.bucket,),
        pool=settings.prefect.work_pool,
    )


def bring_up(settings: Settings, *, say: Callable[[str], None] = lambda _: None) -> None:
    """Start what is embedded, bring the database up to date, register the deployments, point Prefect's client there.

    What runs and is up to date already is left alone, which takes a fraction of a second.

    Raises:
        DocmillError: the first part that does not work, with its remedy.
    """
    addresses = stack_of(settings).up(say=say)
    point_prefect(settings, addresses.prefect_api_url)
    api_url, key = settings.prefect.api_url or addresses.prefect_api_url, settings.prefect.api_key
    if api_url and register_deployments(
        api_url, settings.prefect.work_pool, api_key=key.get_secret_value() if key else None
    ):
        say("deployments are registered")
    url = database_url(settings)
    if asyncio.run(migrations.needs_upgrade(url)):
        asyncio.run(migrations.upgrade(url))
        say("database tables are up to date")
