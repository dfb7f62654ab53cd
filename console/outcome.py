"""How a command ends: exit codes and error messages."""

from __future__ import annotations

import json
import sys
from enum import IntEnum

from docmill.failures import ConfigurationError, DocmillError, DocumentNotFound, TransientError, failure_of


class Exit(IntEnum):
    """Exit codes, as docs/reference/command-line.md documents them."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2  # a wrong option, setting or document type
    BATCH_FAILED = 3  # the batch ended past its failure rate
    NOT_FOUND = 4  # no such batch, document, page, source
    UNAVAILABLE = 5  # Postgres, the object store or Prefect does not answer, or refuses the credentials
    INTERRUPTED = 130


def exit_code(error: BaseException) -> Exit:
    """The exit code for an error."""
    match error:
        case KeyboardInterrupt():
            return Exit.INTERRUPTED
        case ConfigurationError():
            return Exit.USAGE
        case DocumentNotFound():
            return Exit.NOT_FOUND
        case TransientError():
            return Exit.UNAVAILABLE
        case DocmillError():
            return Exit.UNAVAILABLE if error.code == "access_denied" else Exit.UNEXPECTED
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

    console = Console(stderr=True)
    console.print(Text.assemble(("error ", "bold red"), (f"{failure.code}: ", "bold"), failure.message))
    if failure.remedy:
        console.print(Text.assemble(("  what to do: ", "dim"), failure.remedy))
