"""A question to a vision-language model and its answer, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from docmill.failures import ConfigurationError
from docmill.ports import PageImage

OWN_FIELDS = frozenset(
    {
        "model",
        "messages",
        "stream",
        "stream_options",
        "n",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "response_format",
        "logprobs",
        "top_logprobs",
    }
)
"""What the client sets itself; ``extra`` may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How long each part of an answer may take, in seconds.

    A server that died or hangs is noticed by its silence, so a long answer needs no long patience.

    Attributes:
        connect_seconds: until the connection stands.
        first_token_seconds: from the sending to the first piece of the answer; the server's queue and the picture's
            encoding are in it.
        between_tokens_seconds: between two pieces. Longer than ``serving.hang_seconds``, so that a hung server's
            supervisor ends the request and knows what was in flight.
        total_seconds: from the sending to the end.
    """

    connect_seconds: float = 5.0
    first_token_seconds: float = 300.0
    between_tokens_seconds: float = 180.0
    total_seconds: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One question.

    Attributes:
        instruction: the fixed text. It goes before the pictures, so that the server's prefix cache keeps it.
        images: the pages.
        closing: text after the pictures: what differs from page to page.
        system: the system message; None: the model's own default.
        schema: JSON schema that the answer has to follow (constrained decoding), None for free text.
        max_tokens: longest answer.
        temperature: 0 for the likeliest answer.
        logprobs: whether the answer carries the log-probability of each token.
        top_logprobs: how many alternatives of each token, with ``logprobs``.
        extra: further fields of the body, such as ``chat_template_kwargs``, ``repetition_penalty`` or
            ``repetition_detection``.
        page_id: the page that is asked about, for the notes of what is in flight.

    Raises:
        ConfigurationError: ``extra`` has a field that the client sets itself.
    """

    instruction: str = field(repr=False)
    images: tuple[PageImage, ...] = field(default=(), repr=False)
    closing: str = field(default="", repr=False)
    system: str | None = field(default=None, repr=False)
    schema: Mapping[str, Any] | None = field(default=None, repr=False)
    max_tokens: int = 2048
    temperature: float = 0.0
    logprobs: bool = False
    top_logprobs: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)
    page_id: UUID | None = None
    deadlines: Deadlines = Deadlines()

    def __post_init__(self) -> None:
        taken = sorted(OWN_FIELDS & self.extra.keys())
        if taken:
            raise ConfigurationError(
                f"{', '.join(taken)} cannot stand among the extra fields of a request",
                remedy="use the request's own attribute of that name",
            )


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One token of an answer.

    Attributes:
        text: as the server wrote it; a part of a character may show as a replacement character.
        logprob: natural logarithm of its probability.
        data: its UTF-8 bytes; those of all tokens joined are those of the answer. None where the server left them out.
        top: alternatives with their logarithms, likeliest first.
    """

    text: str = field(repr=False)
    logprob: float
    data: bytes | None = field(default=None, repr=False)
    top: tuple[tuple[str, float], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAnswer:
    """What the model wrote.

    Attributes:
        finish_reason: ``stop``, ``length``, ``repetition``… as the server says; ``cut`` where the watcher ended it.
        prompt_tokens, completion_tokens: as the server counted, None where it did not say.
        first_token_seconds: from the sending to the first piece of text; None for an empty answer.
        total_seconds: from the sending to the end. Both are of the send that succeeded.
        served_by: base URL of the server.
        request_id: what the server calls the request; in its log.
        reasoning: what a thinking model wrote before its answer.
        usage: the server's own counts, whole.
        sends: how often the request was sent, 1 when nothing went wrong.
    """

    text: str = field(repr=False)
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None
    first_token_seconds: float | None
    total_seconds: float
    served_by: str
    model: str
    request_id: str
    logprobs: tuple[TokenLogprob, ...] = field(default=(), repr=False)
    reasoning: str = field(default="", repr=False)
    usage: Mapping[str, Any] = field(default_factory=dict)
    sends: int = 1
