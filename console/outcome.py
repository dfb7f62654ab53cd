"""How a command ends: exit codes and error messages."""

from __future__ import annotations

import json
import sys
from enum import IntEnum

from docmill.failures import (
    Category,
    ConfigurationError,
    DocmillError,
    DocumentNotFound,
    TransientError,
    failure_of,
)
from docmill.model_failures import ModelNotFound, ServerInUse, ServerUnknown


class Exit(IntEnum):
    """Exit codes, as docs/reference/command-line.md documents them."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2  # a wrong option, setting or document type
    BATCH_FAILED = 3  # the batch ended past its failure rate
    NOT_FOUND = 4  # no such batch, document, page, source
    UNAVAILABLE = 5  # Postgres, the object store, Prefect or a model server does not answer or work, or refuses us
    IN_USE = 6  # a model server has holders, and --force was not given
    INTERRUPTED = 130


def exit_code(error: BaseException) -> Exit:
    """The exit code for an error."""
    match error:
        case KeyboardInterrupt():
            return Exit.INTERRUPTED
        case ConfigurationError():
            return Exit.USAGE
        case DocumentNotFound() | ModelNotFound() | ServerUnknown():
            return Exit.NOT_FOUND
        case ServerInUse():
            return Exit.IN_USE
        case TransientError():
            return Exit.UNAVAILABLE
        case DocmillError():
            if error.category is Category.CONFIGURATION:
                return Exit.USAGE
            away = error.code == "access_denied" or error.category is Category.ENGINE
            return Exit.UNAVAILABLE if away else Exit.UNEXPECTED
        case _:
            return Exit.UNEXPECTED


def explain(error: BaseException, *, as_json: bool) -> None:
    """Say on stderr what happened and what to do about it."""
    failure = failure_of(error)
    if as_json:
        told = {"error": failure.code, "message": failure.message, "remedy": failure.remedy}
        print(json.dumps(told, ensure_ascii=False), file=sys.stderr)  # noqa: T201
        return
    # imported here: most commands end well, and need no colours for that
    from rich.console import Console
    from rich.text import Text

    from console.output import printable

    console = Console(stderr=True)
    console.print(Text.assemble(("error ", "bold red"), (f"{failure.code}: ", "bold"), printable(failure.message)))
    if failure.remedy:
        console.print(Text.assemble(("  what to do: ", "dim"), printable(failure.remedy)))
