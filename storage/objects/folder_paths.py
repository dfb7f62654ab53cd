"""From keys to paths and back, and what tells one version of a file from another."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

HIDDEN_ROOM = ".docmill"
LONGEST_PART_BYTES = 255
CLOCK_TICK_SECONDS = 0.02
"""File systems stamp times with the kernel's clock, whose tick is at most 10 ms."""
ESCAPED = re.compile(r"\\x([89a-f][0-9a-f])")


def path_of(root: Path, key: str) -> Path:
    """The file that a key names, with no way out of the root.

    Raises:
        ValueError: the key cannot be one: empty parts, dots, NUL, a part longer than a file name may be.
    """
    parts = key.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ValueError(key)
    path = root.joinpath(*parts)
    if "\\x" in key and not os.path.lexists(path):
        # A name that is no UTF-8, as key_of wrote it.
        raw = ESCAPED.sub(lambda found: os.fsdecode(bytes([int(found[1], 16)])), key)
        if os.path.lexists(root.joinpath(*raw.split("/"))):
            return root.joinpath(*raw.split("/"))
    if any(len(os.fsencode(part)) > LONGEST_PART_BYTES for part in parts):
        raise ValueError(key)
    return path


def key_of(name: str) -> str:
    r"""A file's name as text that any database takes: bytes that are no UTF-8 are written ``\xNN``."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def settled(path: Path) -> os.stat_result:
    """The file's facts, taken when its last change is so old that the next one will have another time."""
    found = path.stat()
    age = time.time() - found.st_ctime
    if 0 <= age < CLOCK_TICK_SECONDS:
        time.sleep(CLOCK_TICK_SECONDS - age)
        found = path.stat()
    return found


def etag_of(found: os.stat_result) -> str:
    """Names a version of a file: changes with size, both times and inode.

    The change time is in it because the modification time can be set back by whoever writes.
    """
    facts = f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"
    return hashlib.sha256(facts.encode()).hexdigest()[:32]


def leads_out(root: Path, path: Path) -> bool:
    """Whether a path ends, through links, outside of the root."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def walk(root: Path, prefix: str) -> Iterator[tuple[str, Path]]:
    """All that is to be listed under a root, as (key, path), in order of key.

    Folders that cannot be read, and links to folders whose files are not under the root anyway, come as entries of
    their own.
    """
    yield from _walk(root, root, "", prefix)


def _walk(root: Path, folder: Path, above: str, prefix: str) -> Iterator[tuple[str, Path]]:
    with os.scandir(folder) as entries:
        # A folder sorts by its name with the slash, as its keys do: "a-b" < "a/c" < "a0".
        found = [(key_of(each.name) + ("/" if _enters(each) else ""), each) for each in _visible(entries)]
    named = sorted(found, key=lambda pair: pair[0])
    for name, entry in named:
        key = above + name
        if not (key.startswith(prefix) or (name.endswith("/") and prefix.startswith(key))):
            continue
        path = Path(entry.path)
        if name.endswith("/"):
            yield from _walk(root, path, key, prefix)
        elif not (entry.is_symlink() and path.is_dir() and _listed_elsewhere(root, path)):
            yield key, path


def _visible(entries: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
    return (each for each in entries if not each.name.startswith("."))


def _enters(entry: os.DirEntry[str]) -> bool:
    """Whether to go into it: folders, not links to folders (they may lead out, or round in circles)."""
    if not entry.is_dir(follow_symlinks=False):
        return False
    try:
        os.scandir(entry.path).close()
    except OSError:
        return False
    return True


def _listed_elsewhere(root: Path, link: Path) -> bool:
    """Whether the folder a link leads to is listed under the root in its own place."""
    real_root, target = Path(os.path.realpath(root)), Path(os.path.realpath(link))
    if not target.is_relative_to(real_root):
        return False
    return not any(part.startswith(".") for part in target.relative_to(real_root).parts)
