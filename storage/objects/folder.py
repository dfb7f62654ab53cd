"""A folder as an object store: for local use, and for platforms without an embedded S3 server.

A bucket is the absolute path of a folder, a key the path below it with forward slashes. Where the bucket is a file, it
is that one file: a listing names its folder as the bucket. User metadata lie in ``.docmill/metadata/``, only for what
docmill itself has put there. Hidden files and folders (``.name``) are no documents.

What cannot be read is listed all the same, so that it becomes a failure that somebody sees: files and folders without
the right to read them, links that lead out of the folder, broken links, pipes.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import shutil
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from docmill.failures import AccessDenied, ConfigurationError, DocumentNotFound
from docmill.ports import ObjectRef
from storage.objects.folder_paths import HIDDEN_ROOM, etag_of, leads_out, path_of, settled, walk
from storage.objects.local_files import CHUNK_BYTES, cannot_write, opened, pieces_of, write_whole
from storage.objects.metadata import checked
from storage.objects.sidecars import read_sidecar, remove_sidecar, write_sidecar

Result = TypeVar("Result")
LIST_PAGE = 500


class FolderStore:
    """Folders of this machine as buckets. Needs no opening and no closing."""

    async def list(self, bucket: str, prefix: str = "") -> AsyncIterator[ObjectRef]:
        """All files whose key starts with the prefix, in order of key.

        Raises:
            DocumentNotFound: there is no such folder.
            AccessDenied: it may not be read.
        """
        root = _root(bucket)
        if root.is_file():
            yield await _in_thread(lambda: _listed(root.parent, root.name, root))
            return
        found = _listing(root, prefix)
        while page := await _in_thread(lambda: tuple(itertools.islice(found, LIST_PAGE))):
            for ref in page:
                yield ref

    async def head(self, bucket: str, key: str) -> ObjectRef:
        """The file as it is now, with the metadata it was put with."""
        return await _in_thread(lambda: _current(_folder(bucket), key))

    async def fetch(self, ref: ObjectRef, target: Path) -> None:
        """Copy exactly the version that ``ref`` names to ``target`` (whole or not at all)."""
        await _in_thread(lambda: _copy(ref, target))

    async def put(
        self,
        bucket: str,
        key: str,
        source: Path | bytes,
        *,
        content_type: str | None = None,
        metadata: dict[str, str] | None = None,
    ) -> ObjectRef:
        """Store bytes or a file whole; makes the folder where it is missing.

        Raises:
            ConfigurationError: the key is no possible file name, or the disk is full or may not be written.
        """
        facts = checked(metadata)
        return await _in_thread(lambda: _store(_absolute(bucket), key, source, content_type, facts))

    async def presigned_get(self, bucket: str, key: str, *, expires_seconds: int = 3600) -> str:
        """The file's ``file://`` URL; it opens in a browser of this machine and does not expire."""
        root = _folder(bucket)
        ref = await _in_thread(lambda: _current(root, key))
        return path_of(root, ref.key).as_uri()

    async def delete(self, bucket: str, key: str) -> None:
        """Remove the file, and folders that are empty then; nothing happens where there is none."""
        await _in_thread(lambda: _remove(_folder(bucket), key))

    async def check(self) -> None:
        """Nothing to reach and no credentials."""


async def _in_thread(work: Callable[[], Result]) -> Result:
    return await asyncio.to_thread(work)


def _absolute(bucket: str) -> Path:
    root = Path(bucket)
    if not root.is_absolute():
        raise ConfigurationError(f"{bucket} is not an absolute path", remedy="name the folder from the root: /…")
    return root


def _root(bucket: str) -> Path:
    root = _absolute(bucket)
    try:
        root.stat()
    except PermissionError as error:
        raise AccessDenied(f"{root} may not be read") from error
    except OSError as error:
        raise DocumentNotFound(
            f"there is no file or folder {root}", remedy="check the path; it is looked up on the worker's machine"
        ) from error
    return root


def _folder(bucket: str) -> Path:
    root = _absolute(bucket)
    return root.parent if root.is_file() else root


def _listing(root: Path, prefix: str) -> Iterator[ObjectRef]:
    try:
        os.scandir(root).close()
    except PermissionError as error:
        raise AccessDenied(f"the folder {root} may not be read") from error
    for key, path in walk(root, prefix):
        yield _listed(root, key, path)


def _listed(root: Path, key: str, path: Path) -> ObjectRef:
    """A reference to whatever is there, readable or not: reading it is what fails, later."""
    try:
        found = settled(path)
    except OSError:
        try:
            found = path.lstat()
        except OSError:
            return ObjectRef(str(root), key, "unreadable", 0, datetime.fromtimestamp(0, UTC))
    size = found.st_size if stat.S_ISREG(found.st_mode) else 0
    return ObjectRef(str(root), key, etag_of(found), size, datetime.fromtimestamp(found.st_mtime, UTC))


def _regular(root: Path, key: str) -> tuple[Path, os.stat_result]:
    """The key's file, made sure to be one that may be read."""
    try:
        path = path_of(root, key)
    except ValueError as error:
        raise DocumentNotFound(f"{key!r} cannot be a file in {root}") from error
    try:
        if leads_out(root, path):
            raise AccessDenied(
                f"{path} is a link that leads out of {root}", remedy="name the folder it leads to as the source"
            )
        found = settled(path)
        if stat.S_ISDIR(found.st_mode):
            os.scandir(path).close()
        if not stat.S_ISREG(found.st_mode):
            raise DocumentNotFound(f"{path} is no file", remedy="only files can be read: move it out of the folder")
        return path, found
    except PermissionError as error:
        raise AccessDenied(f"{path} may not be read", remedy=f"give docmill's user the right to read {path}") from error
    except OSError as error:
        raise DocumentNotFound(f"{path} is not there") from error


def _current(root: Path, key: str) -> ObjectRef:
    _, found = _regular(root, key)
    facts = read_sidecar(root, key, found)
    return ObjectRef(
        bucket=str(root),
        key=key,
        etag=etag_of(found),
        size=found.st_size,
        last_modified=datetime.fromtimestamp(found.st_mtime, UTC),
        content_type=facts.content_type,
        metadata=facts.metadata,
    )


def _copy(ref: ObjectRef, target: Path) -> None:
    root = _folder(ref.bucket)
    path, before = _regular(root, ref.key)
    changed = DocumentNotFound(f"{path} has changed since it was listed")
    if etag_of(before) != ref.etag:
        raise changed
    with opened(path) as data:

        def unchanged() -> None:
            # What was open all the while is what was copied; a writer in between shows in its times.
            if etag_of(os.fstat(data.fileno())) != ref.etag:
                raise changed

        write_whole(pieces_of(data), target, ref.size, ref.key, before_moving=unchanged)


def _store(root: Path, key: str, source: Path | bytes, content_type: str | None, facts: dict[str, str]) -> ObjectRef:
    try:
        path = path_of(root, key)
        if any(part.startswith(".") for part in key.split("/")):
            raise ValueError(key)
    except ValueError as error:
        raise ConfigurationError(
            f"{key!r} cannot be a file in {root}",
            remedy="use parts of 1 to 255 bytes that do not start with a dot, with single slashes between them",
        ) from error
    if leads_out(root, path.parent):
        raise AccessDenied(f"{path} lies behind a link that leads out of {root}", remedy="use another key")
    room = root / HIDDEN_ROOM / "incoming"
    new = room / secrets.token_hex(12)
    with opened(source) as data:
        try:
            room.mkdir(parents=True, exist_ok=True)
            with new.open("xb") as out:
                shutil.copyfileobj(data, out, CHUNK_BYTES)
                out.flush()
                os.fsync(out.fileno())
            found = new.stat()
            if content_type or facts:
                # Before the file: a sidecar speaks only for the very file it names, so a kill in between harms nothing.
                write_sidecar(root, key, found, content_type, facts)
            _move(new, path)
            if not (content_type or facts):
                remove_sidecar(root, key)
            found = path.stat()
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            raise ConfigurationError(
                f"{path} cannot be a file: a folder has its name, or a file that of a folder above it",
                remedy="use another key",
            ) from error
        except OSError as error:
            raise cannot_write(path, error) from error
        finally:
            new.unlink(missing_ok=True)
    when = datetime.fromtimestamp(found.st_mtime, UTC)
    return ObjectRef(str(root), key, etag_of(found), found.st_size, when, None, content_type, facts)


def _move(new: Path, path: Path) -> None:
    for last_try in (False, True):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            new.replace(path)
            return
        except FileNotFoundError:
            if last_try:  # else: a delete took the empty folder away in between
                raise


def _remove(root: Path, key: str) -> None:
    try:
        path = path_of(root, key)
        if leads_out(root, path.parent):
            return
        path.unlink()
    except (ValueError, FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return
    except PermissionError as error:
        if path.is_dir():
            return
        raise AccessDenied(f"{path} may not be deleted") from error
    except OSError as error:
        raise cannot_write(path, error) from error
    remove_sidecar(root, key)
    for folder in path.parents:
        if folder == root or not folder.is_relative_to(root):
            break
        try:
            folder.rmdir()
        except OSError:
            break
