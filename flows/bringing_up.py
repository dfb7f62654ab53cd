"""Everything that must be there before a flow can run: embedded servers, tables, deployments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from docmill.settings import Settings
from flows.deployments import register_deployments
from flows.endpoints import database_url, point_prefect
from flows.server_ends import end_model_servers
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


def bring_up_database(settings: Settings, *, say: Callable[[str], None] = lambda _: None) -> None:
    """Start Postgres alone, where it is embedded, and bring its tables up to date: all that model servers need.

    Raises:
        DocmillError: it does not start, or cannot be reached.
    """
    only = Stack(
        settings.data_dir,
        postgres=settings.database.url is None,
        objects=False,
        prefect=False,
        binaries=settings.database.binaries,
    )
    only.up(say=say)
    _upgrade(settings, say)


def end_all(settings: Settings, *, say: Callable[[str], None] = lambda _: None) -> None:
    """End the local stack, and the model servers that were started from its data folder.

    In an order that lets each part say how it ended: flow runs, model servers, then the stores.
    """
    stack_of(settings).down(say=say, before_stores=lambda: end_model_servers(settings, say=say))


def bring_up(settings: Settings, *, say: Callable[[str], None] = lambda _: None) -> None:
    """Start what is embedded, bring the database up to date, register the deployments, point Prefect's client there.

    What runs and is up to date already is left alone, which takes a fraction of a second.

    Raises:
        DocmillError: the first part that does not work, with its remedy.
    """
    addresses = stack_of(settings).up(say=say)
    point_prefect(settings, addresses.prefect_api_url)
    api_url, key = settings.prefect.api_url or addresses.prefect_api_url, settings.prefect.api_key
    serving = settings.serving.work_pool if "work_pool" in settings.serving.model_fields_set else None
    if api_url and register_deployments(
        api_url,
        settings.prefect.work_pool,
        serving_pool=serving,
        api_key=key.get_secret_value() if key else None,
    ):
        say("deployments are registered")
    _upgrade(settings, say)


def _upgrade(settings: Settings, say: Callable[[str], None]) -> None:
    url = database_url(settings)
    if asyncio.run(migrations.needs_upgrade(url)):
        asyncio.run(migrations.upgrade(url))
        say("database tables are up to date")
