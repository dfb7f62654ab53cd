"""What makes two readings of a page the same work."""

from __future__ import annotations

import hashlib

from docmill.document_types import DocumentType


def extractor_version(document_type: DocumentType, engine: str, engine_fingerprint: str) -> str:
    """The version under which pages are read: ``ENGINE-`` and 16 hex digits.

    Changes with the document type (fields, aliases, prompt hints, schema), the engine and everything that the engine's
    fingerprint names (models, prompts, code). Work is keyed by (sha256, page_no, extractor_version).
    """
    parts = "\n".join((document_type.name, document_type.fingerprint, engine, engine_fingerprint))
    return f"{engine}-{hashlib.sha256(parts.encode()).hexdigest()[:16]}"
