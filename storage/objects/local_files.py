"""Files on this machine's disk, written whole or not at all."""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from docmill.failures import AccessDenied, ConfigurationError, DocumentNotFound, ObjectStoreUnavailable

CHUNK_BYTES = 1024 * 1024


def write_whole(
    pieces: Iterable[bytes],
    target: Path,
    size: int,
    key: str,
    *,
    before_moving: Callable[[], None] = lambda: None,
) -> None:
    """Write pieces to a file beside the target, then move it there, if it is as long as it must be.

    Args:
        pieces: the bytes.
        target: replaced where it exists; its folder must exist.
        size: bytes that must come.
        key: named in messages.
        before_moving: raises where what was written must not be kept.

    Raises:
        ObjectStoreUnavailable: fewer or more bytes came.
        ConfigurationError: the target cannot be written.
    """
    partial = target.with_name(f".{secrets.token_hex(8)}.part")
    count = 0
    try:
        try:
            out = partial.open("xb")
        except OSError as error:
            raise cannot_write(target, error) from error
        with out:
            for piece in pieces:
                count += len(piece)
                try:
                    out.write(piece)
                except OSError as error:
                    raise cannot_write(target, error) from error
        if count != size:
            raise ObjectStoreUnavailable(f"{count} of {size} bytes of {key} came")
        before_moving()
        try:
            partial.replace(target)
        except OSError as error:
            raise cannot_write(target, error) from error
    finally:
        partial.unlink(missing_ok=True)


def cannot_write(target: Path, error: OSError) -> ConfigurationError:
    """The error for a place of this machine that cannot be written."""
    return ConfigurationError(
        f"cannot write in {target.parent}: {error.strerror}",
        remedy="free some space there, or give docmill's user the right to write",
    )


def opened(source: Path | bytes) -> BinaryIO:
    """Bytes or a file, to read from.

    Raises:
        AccessDenied: the file may not be read.
        DocumentNotFound: there is none.
    """
    if isinstance(source, bytes):
        return io.BytesIO(source)
    try:
        return source.open("rb")
    except PermissionError as error:
        raise AccessDenied(
            f"{source} may not be read", remedy=f"give docmill's user the right to read {source}"
        ) from error
    except OSError as error:
        raise DocumentNotFound(f"{source} cannot be read: {error.strerror}") from error


def pieces_of(data: BinaryIO) -> Iterator[bytes]:
    """The rest of a file, piece by piece.

    Raises:
        ObjectStoreUnavailable: the disk or the network drive does not give it.
    """
    while True:
        try:
            piece = data.read(CHUNK_BYTES)
        except OSError as error:
            raise ObjectStoreUnavailable(
                f"reading stopped: {error.strerror}", remedy="check the disk or the network drive"
            ) from error
        if not piece:
            return
        yield piece
