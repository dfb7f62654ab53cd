"""The command ``docmill``."""

from __future__ import annotations

import sys
import traceback
from typing import Annotated

import typer

from console import batches, configuration, database, demo, documents, evaluation, planning, preflight, serving, stack
from console.outcome import Exit, exit_code, explain
from docmill import __version__

app = typer.Typer(
    name="docmill",
    help="Buckets of scanned forms in, typed rows in Postgres out, and no page lost on the way.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 fine, 1 unexpected, 2 wrong use or setting, 3 batch past its failure rate, "
    "4 not found, 5 a service is away, 6 a model server is in use, 130 interrupted.",
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"docmill {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of errors.")] = False,
) -> None:
    """Options of every command."""


for part in (stack, batches, documents, database, evaluation, configuration, demo, planning, preflight, serving):
    part.register(app)


def main() -> None:
    """Run the command and end the process with its documented exit code."""
    try:
        code = app(standalone_mode=False)
    except typer.Exit as ended:
        code = ended.exit_code
    except typer.Abort:
        code = Exit.INTERRUPTED
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    except Exception as error:
        code = _failed(error)
    sys.exit(int(code or 0))


def _failed(error: Exception) -> int:
    show = getattr(error, "show", None)  # what the option parser raises can print itself with the usage line
    if callable(show) and hasattr(error, "exit_code"):
        show()
        return int(Exit.USAGE)
    if "--debug" in sys.argv:
        traceback.print_exception(error)
    explain(error, as_json="--json" in sys.argv)
    return int(exit_code(error))
