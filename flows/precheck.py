"""What can be said about a run before it is started: wrong parameters are refused where they were given."""

from __future__ import annotations

from docmill.document_types import load_document_type
from docmill.settings import Settings
from flows.resources import make_extractor, s3_store
from storage.objects.sources import SourceKind, parse_source


async def check_ingestion(settings: Settings, source: str, document_type: str, engine: str, *, local: bool) -> None:
    """Check source, document type and engine.

    Args:
        settings: which object store.
        source: as for the flow ``ingest``.
        document_type: of the run.
        engine: of the run.
        local: the run will be on this machine; a folder of another machine's worker cannot be seen from here.

    Raises:
        ConfigurationError: no such document type, engine or kind of source.
        DocumentNotFound: no such bucket, folder or file.
        AccessDenied, ObjectStoreUnavailable: the bucket may not be listed, or the store does not answer.
    """
    load_document_type(document_type, settings.pipeline.document_types)
    make_extractor(engine, settings)
    if not (local or ":/" in source):
        return
    place = parse_source(source)
    if place.kind is SourceKind.S3:
        store = s3_store(settings)
        try:
            async for _ in store.list(place.bucket, place.prefix):
                break
        finally:
            await store.close()
