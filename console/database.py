"""``docmill psql``."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Annotated
from urllib.parse import unquote, urlsplit

import typer

from docmill.failures import ConfigurationError
from docmill.settings import load_settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(psql)


def psql(
    arguments: Annotated[
        list[str] | None, typer.Argument(help='Handed to psql, such as: -c "SELECT * FROM v_batches".')
    ] = None,
) -> None:
    """Open psql on the ledger, or run it with what is given. The password goes by its environment."""
    from flows.endpoints import database_url
    from storage.embedded.postgres_binaries import find_binaries

    settings = load_settings()
    place = urlsplit(database_url(settings))
    program = shutil.which("psql")
    if program is None:
        beside = find_binaries(settings.database.binaries, None).program("psql")
        program = str(beside) if beside.is_file() else None
    if program is None:
        raise ConfigurationError("there is no psql here", remedy="install PostgreSQL's client (postgresql-client)")
    environment = os.environ | {
        "PGHOST": place.hostname or "",
        "PGPORT": str(place.port or 5432),
        "PGUSER": unquote(place.username or ""),
        "PGPASSWORD": unquote(place.password or ""),
        "PGDATABASE": unquote(place.path.lstrip("/")),
    }
    raise typer.Exit(subprocess.run([program, *(arguments or [])], env=environment).returncode)
