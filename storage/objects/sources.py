"""What people name as a source: ``s3://bucket/prefix``, a folder or a file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import unquote, urlsplit

from docmill.failures import AccessDenied, ConfigurationError, DocumentNotFound
from docmill.ports import ObjectStore
from storage.objects.folder import FolderStore

BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{1,61}[A-Za-z0-9]")
HOW = "name s3://bucket/prefix, a folder or a file"


class SourceKind(StrEnum):
    """Where a source lies."""

    S3 = "s3"
    FOLDER = "folder"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Source:
    """A place to ingest from: what :meth:`ObjectStore.list` takes.

    Attributes:
        bucket: the S3 bucket, or the absolute path of the folder or file.
        prefix: keys start with it; empty for folders and files.
    """

    kind: SourceKind
    bucket: str
    prefix: str = ""

    def __str__(self) -> str:
        """The source in a form that means the same in any working directory."""
        return f"s3://{self.bucket}/{self.prefix}" if self.kind is SourceKind.S3 else self.bucket


def parse_source(text: str) -> Source:
    """The place that a source names. Relative paths start at the working directory.

    ``s3://bucket/forms`` takes all keys that start with ``forms``, as S3 itself does; ``s3://bucket/forms/`` only those
    in that folder.

    Raises:
        ConfigurationError: it names no place that docmill can read.
        DocumentNotFound: there is no such folder or file.
        AccessDenied: the way to it is closed.
    """
    given = text.strip()
    if not given:
        raise ConfigurationError("the source is empty", remedy=HOW)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):/{1,3}", given)
    if scheme is None:
        return _local(Path(given))
    if scheme[1].lower() == "file":
        return _local(Path(unquote(urlsplit(given).path)))
    if scheme[1].lower() != "s3":
        raise ConfigurationError(
            f"docmill does not read {scheme[1]}:// sources",
            remedy=f"{HOW}; any store that speaks S3 is reached with s3:// and objects.endpoint",
        )
    bucket, _, prefix = given[len("s3://") :].partition("/")
    if not given[:5].lower() == "s3://" or not BUCKET.fullmatch(bucket):
        raise ConfigurationError(
            f"{given} names no bucket",
            remedy="like s3://forms/2024/; a bucket's name has 3 to 63 letters, digits, dots and hyphens",
        )
    return Source(SourceKind.S3, bucket, prefix)


def _local(path: Path) -> Source:
    try:
        place = path.expanduser().resolve()
        kind = SourceKind.FOLDER if place.is_dir() else SourceKind.FILE
        place.stat()
    except PermissionError as error:
        raise AccessDenied(f"{path} may not be read", remedy="give docmill's user the right to read it") from error
    except (OSError, RuntimeError, ValueError) as error:
        raise DocumentNotFound(
            f"there is no file or folder {path}", remedy=f"{HOW}; paths are looked up on the worker's machine"
        ) from error
    return Source(kind, str(place))


def store_for(bucket: str, s3: Callable[[], ObjectStore]) -> ObjectStore:
    """The store that holds a bucket: an absolute path is a folder (or file), anything else is in S3.

    Args:
        bucket: of a :class:`Source` or an ``ObjectRef``.
        s3: gives the S3 store; called only when it is needed.
    """
    return FolderStore() if Path(bucket).is_absolute() else s3()
