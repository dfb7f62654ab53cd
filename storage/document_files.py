"""Documents on the local disk while they are worked on: fetched once, shared by their pages, dropped when full."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from docmill.failures import ConfigurationError
from docmill.ports import ObjectRef, ObjectStore


class DocumentFiles:
    """A folder of fetched documents, private to this process.

    Args:
        root: where the folders of all processes lie; those of dead processes are removed on the way in.
        max_bytes: above it the longest unused files go, except those in use.
    """

    def __init__(self, root: Path, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._locks: dict[str, asyncio.Lock] = {}
        self._users: dict[str, int] = {}
        self._order: dict[str, int] = {}  # name -> bytes, longest unused first
        self._folder = root / f"{os.getpid()}-{secrets.token_hex(4)}"
        try:
            root.mkdir(parents=True, exist_ok=True)
            _remove_dead(root)
            self._folder.mkdir(mode=0o700)
        except OSError as error:
            raise ConfigurationError(
                f"cannot write below {root}: {error.strerror}", remedy="free space, or point data_dir elsewhere"
            ) from error

    def close(self) -> None:
        """Remove everything."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @contextlib.asynccontextmanager
    async def hold(self, ref: ObjectRef, store: ObjectStore) -> AsyncIterator[Path]:
        """The document's bytes as a file that stays there until the context ends.

        Raises:
            DocmillError: what ``store.fetch`` raises.
            ConfigurationError: the disk is full.
        """
        name = hashlib.sha256(f"{ref.bucket}\n{ref.key}\n{ref.etag}\n{ref.version_id}".encode()).hexdigest()[:32]
        path = self._folder / name
        self._users[name] = self._users.get(name, 0) + 1
        try:
            async with self._locks.setdefault(name, asyncio.Lock()):
                if not path.exists():
                    await self._fetch(ref, store, path)
                self._order.pop(name, None)
                self._order[name] = path.stat().st_size
            yield path
        finally:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name]
                self._locks.pop(name, None)
            self._drop_unused()

    async def _fetch(self, ref: ObjectRef, store: ObjectStore, path: Path) -> None:
        try:
            await store.fetch(ref, path)
        except OSError as error:
            raise ConfigurationError(
                f"cannot write to {self._folder.parent}: {error.strerror}",
                remedy="free space, or point data_dir elsewhere",
            ) from error

    def _drop_unused(self) -> None:
        total = sum(self._order.values())
        for name in [n for n in self._order if n not in self._users]:
            if total <= self._max_bytes:
                break
            total -= self._order.pop(name)
            (self._folder / name).unlink(missing_ok=True)


def _remove_dead(root: Path) -> None:
    for folder in root.iterdir():
        pid = folder.name.partition("-")[0]
        if not pid.isdigit():
            continue
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except PermissionError:
            continue  # another user's living process
