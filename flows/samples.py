"""The sample scans that come with docmill, put into the object store as a user's documents would be."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from pathlib import Path

from docmill.document_types import builtin_folder
from docmill.failures import ConfigurationError, DocumentNotFound
from docmill.settings import Settings
from flows.resources import s3_store

KINDS = {"receipts": "receipt", "invoices": "invoice", "applications": "application_form"}
PREFIX = "samples"


@dataclass(frozen=True, slots=True)
class SampleSource:
    """Samples of one kind in the store.

    Attributes:
        source: for ``ingest``.
        uploaded: how many were not there yet.
    """

    source: str
    document_type: str
    files: int
    uploaded: int


def samples_folder() -> Path:
    """The folder of the samples (in a checkout and in an installed wheel).

    Raises:
        ConfigurationError: it is missing.
    """
    folder = builtin_folder().parent / "samples"
    if not folder.is_dir():
        raise ConfigurationError(f"the samples are missing: {folder}", remedy="install docmill again")
    return folder


async def upload_samples(settings: Settings) -> list[SampleSource]:
    """Put the samples that are not there yet into the bucket of the settings, below ``samples/``."""
    store = s3_store(settings)
    bucket = settings.objects.bucket
    found = []
    try:
        for folder, document_type in KINDS.items():
            files = sorted(path for path in (samples_folder() / folder).iterdir() if path.is_file())
            uploaded = 0
            for path in files:
                data = await asyncio.to_thread(path.read_bytes)
                key = f"{PREFIX}/{folder}/{path.name}"
                try:
                    same = (await store.head(bucket, key)).etag == hashlib.md5(data, usedforsecurity=False).hexdigest()
                except DocumentNotFound:
                    same = False
                if not same:
                    await store.put(bucket, key, data)
                    uploaded += 1
            found.append(SampleSource(f"s3://{bucket}/{PREFIX}/{folder}/", document_type, len(files), uploaded))
    finally:
        await store.close()
    return found
