"""Foreign exceptions made our own."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

from docmill.failures import DocmillError, WorkerCrashed


@contextlib.contextmanager
def translated(kind: type[DocmillError], message: str) -> Iterator[None]:
    """Whatever a library raises inside becomes ``kind(message)``; DocmillErrors pass; warnings are silent.

    Libraries raise TypeError, ValueError, SyntaxError, struct.error, KeyError, RuntimeError... on damaged files, so
    the type says nothing. Memory that runs out is not the file's fault.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except DocmillError:
        raise
    except MemoryError as error:
        raise WorkerCrashed("memory ran out while the page was drawn") from error
    except Exception as error:
        name = f"{type(error).__module__}.{type(error).__qualname__}"
        raise kind(message, detail={"type": name}) from error
