"""Everything that must be there before a flow can run: embedded servers, tables, deployments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from docmill.document_types import builtin_folder
from docmill.settings import Settings
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


def prefect_file_folder() -> Path:
    """The folder of the ``prefect.yaml`` that comes with docmill (in a checkout and in an installed wheel)."""
    return builtin_folder().parent


def bring_up(settings: Settings, *, say: Callable[[str], None] = lambda _: None) -> None:
    """Start what is embedded, bring the database up to date, register the deployments, point Prefect's client there.

    What runs and is up to date already is left alone, which takes a fraction of a second.

    Raises:
        DocmillError: the first part that does not work, with its remedy.
    """
    addresses = stack_of(settings).up(prefect_file_folder(), say=say)
    point_prefect(settings, addresses.prefect_api_url)
    url = database_url(settings)
    if asyncio.run(migrations.needs_upgrade(url)):
        asyncio.run(migrations.upgrade(url))
        say("database tables are up to date")
