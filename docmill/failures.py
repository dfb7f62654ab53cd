"""What can go wrong, as data.

::

    DocmillError(code, category, message, disposition)
    ├ TransientError   RETRY      same request, backoff and jitter; waits for the server, spends no attempt
    │ ├ ServerNotReady ServerOverloaded RequestTimeout ObjectStoreUnavailable DatabaseUnavailable
    ├ GenerationError  RESAMPLE   spends an attempt and changes something
    │ ├ TruncatedOutput InvalidOutput RepetitiveOutput EmptyOutput WrongLanguage WorkerCrashed PageDeadlineExceeded
    └ PermanentError   GIVE_UP    failure row at once
      ├ DocumentNotFound UnreadableDocument EncryptedDocument UnsupportedFormat EmptyDocument DocumentTooLarge
      ├ UnreadablePage PageTooLarge AccessDenied PoisonPage ConfigurationError LeaseLost
      └ UnexpectedError: anything that is not a DocmillError (a bug): recorded like the rest, never lost

``failure_of`` is the one place where an exception becomes a failure. Nothing decides by the text of a message.
Messages name the remedy and never quote what stands on a page. Errors survive pickling.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar


class Disposition(StrEnum):
    """What is to be done about an error."""

    RETRY = "retry"
    RESAMPLE = "resample"
    GIVE_UP = "give_up"


class Category(StrEnum):
    """Whose trouble it is."""

    DOCUMENT = "document"
    PAGE = "page"
    ENGINE = "engine"
    OBJECTS = "objects"
    DATABASE = "database"
    CONFIGURATION = "configuration"
    INTERNAL = "internal"


class DocmillError(Exception):
    """An error with a code, a category, a disposition, a message for people and a remedy.

    Args:
        message: what happened, in one sentence, without page contents and secrets.
        remedy: what to do about it; the class's own one when left out.
        detail: facts for the record (JSON-able), such as the body of an HTTP error.
    """

    code: ClassVar[str] = "error"
    category: ClassVar[Category] = Category.INTERNAL
    disposition: ClassVar[Disposition] = Disposition.GIVE_UP
    default_remedy: ClassVar[str] = ""

    def __init__(self, message: str, *, remedy: str | None = None, detail: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = self.default_remedy if remedy is None else remedy
        self.detail = detail or {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.message, self.remedy, self.detail)

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


def _rebuilt(kind: type[DocmillError], message: str, remedy: str, detail: dict[str, Any]) -> DocmillError:
    return kind(message, remedy=remedy, detail=detail)


# --- transient: the same request again ---------------------------------------------------------------------------


class TransientError(DocmillError):
    """Passing trouble: the same request may go through later. Spends no attempt."""

    code = "transient"
    disposition = Disposition.RETRY


class ServerNotReady(TransientError):
    """A server that the run needs (Prefect, a model server) is starting or gone."""

    code = "server_not_ready"
    category = Category.ENGINE
    default_remedy = "wait for it, or see its state with: docmill status"


class ServerOverloaded(TransientError):
    """The server asked to come back later (429, 503)."""

    code = "server_overloaded"
    category = Category.ENGINE
    default_remedy = "lower pipeline.workers or add a model server"


class RequestTimeout(TransientError):
    """No answer in time."""

    code = "request_timeout"
    category = Category.ENGINE
    default_remedy = "see whether the server is overloaded, or raise its deadline"


class ObjectStoreUnavailable(TransientError):
    """The object store does not answer, or answers 5xx."""

    code = "object_store_unavailable"
    category = Category.OBJECTS
    default_remedy = "check that the store runs and objects.endpoint is right: docmill config check"


class DatabaseUnavailable(TransientError):
    """Postgres does not answer."""

    code = "database_unavailable"
    category = Category.DATABASE
    default_remedy = "check that Postgres runs and database.url is right: docmill config check"


# --- generation: an attempt is spent, something changes ----------------------------------------------------------


class GenerationError(DocmillError):
    """The engine answered, but not with something usable. Spends an attempt."""

    code = "generation"
    category = Category.ENGINE
    disposition = Disposition.RESAMPLE


class TruncatedOutput(GenerationError):
    """The answer was cut at its length limit."""

    code = "truncated_output"


class InvalidOutput(GenerationError):
    """The answer is not what the schema asks for."""

    code = "invalid_output"


class RepetitiveOutput(GenerationError):
    """The answer repeats itself."""

    code = "repetitive_output"


class EmptyOutput(GenerationError):
    """The answer is empty although the page is not."""

    code = "empty_output"


class WrongLanguage(GenerationError):
    """The answer is in another language than the page."""

    code = "wrong_language"


class WorkerCrashed(GenerationError):
    """The process that worked on the page died (killed, out of memory, crash in a library)."""

    code = "worker_crashed"
    category = Category.PAGE
    default_remedy = "look at the page; if memory was short, lower pipeline.processes or ocr.max_pixels"


class PageDeadlineExceeded(GenerationError):
    """The page took longer than its deadline and its process was killed."""

    code = "page_deadline_exceeded"
    category = Category.PAGE
    default_remedy = "look at the page, or raise pipeline.page_deadline_seconds"


# --- permanent: a failure row at once ----------------------------------------------------------------------------


class PermanentError(DocmillError):
    """Trying again changes nothing until somebody acts."""

    code = "permanent"
    disposition = Disposition.GIVE_UP


class DocumentNotFound(PermanentError):
    """The object or file is gone."""

    code = "document_not_found"
    category = Category.DOCUMENT
    default_remedy = "it was deleted or renamed after listing: run the ingestion again"


class UnreadableDocument(PermanentError):
    """The file is damaged beyond opening."""

    code = "unreadable_document"
    category = Category.DOCUMENT
    default_remedy = "the file is damaged: scan or export it again and upload it under the same name"


class EncryptedDocument(PermanentError):
    """The file needs a password that is not known, or an encryption that cannot be read."""

    code = "encrypted_document"
    category = Category.DOCUMENT
    default_remedy = "add its password to pipeline.passwords, or upload it unprotected"


class UnsupportedFormat(PermanentError):
    """The content is of no type that docmill reads."""

    code = "unsupported_format"
    category = Category.DOCUMENT
    default_remedy = "upload it as PDF, TIFF, JPEG, PNG, WebP, BMP, GIF or HEIC"


class EmptyDocument(PermanentError):
    """No bytes, or no pages."""

    code = "empty_document"
    category = Category.DOCUMENT
    default_remedy = "the upload was cut off or the file has no pages: upload it again"


class DocumentTooLarge(PermanentError):
    """More bytes or pages than the limits allow."""

    code = "document_too_large"
    category = Category.DOCUMENT
    default_remedy = "split it, or raise pipeline.max_document_bytes or pipeline.max_pages"


class UnreadablePage(PermanentError):
    """The document opens but this page cannot be drawn."""

    code = "unreadable_page"
    category = Category.PAGE
    default_remedy = "the page is damaged: scan or export the document again"


class PageTooLarge(PermanentError):
    """The page has more pixels than can be held, and could not be drawn smaller."""

    code = "page_too_large"
    category = Category.PAGE
    default_remedy = "scan it at a lower resolution, or raise pipeline.max_source_pixels"


class AccessDenied(PermanentError):
    """The store or the file system refuses the credentials."""

    code = "access_denied"
    category = Category.OBJECTS
    default_remedy = "check the credentials and what they may read: docmill config check"


class PoisonPage(PermanentError):
    """In flight whenever its worker died (``pipeline.max_crashes`` times) or its model server (twice): set aside."""

    code = "poison_page"
    category = Category.PAGE
    default_remedy = "look at the page; docmill reprocess --code poison_page tries it again"


class ConfigurationError(PermanentError):
    """A setting, flag or document type is wrong."""

    code = "configuration"
    category = Category.CONFIGURATION
    default_remedy = "see: docmill config check"


class LeaseLost(PermanentError):
    """The page was claimed by another worker meanwhile; what this one found is dropped, not recorded."""

    code = "lease_lost"
    category = Category.INTERNAL
    default_remedy = "raise pipeline.lease_seconds if it happens without a crash"


class UnexpectedError(PermanentError):
    """A bug: an exception that nobody foresaw."""

    code = "unexpected"
    category = Category.INTERNAL
    default_remedy = "please report it with the error's type; the page can be tried again with: docmill reprocess"


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as it is recorded."""

    code: str
    category: Category
    message: str
    remedy: str
    disposition: Disposition
    detail: dict[str, Any]


def failure_of(error: BaseException) -> Failure:
    """The failure that an exception becomes.

    What is not a :class:`DocmillError` becomes ``unexpected`` with the exception's type; its text is left out, since it
    may quote a page or a secret.
    """
    if isinstance(error, DocmillError):
        return Failure(error.code, error.category, error.message, error.remedy, error.disposition, error.detail)
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    return failure_of(UnexpectedError(f"unexpected {name}", detail={"type": name}))
