"""User metadata: what fits through HTTP headers, in both directions."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from email.errors import HeaderParseError
from email.header import decode_header, make_header

from docmill.failures import ConfigurationError

NAME = re.compile(r"[A-Za-z0-9!#$&'*+.^_`|~-]+")
PREFIX = "x-amz-meta-"


def checked(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """The metadata with lower-case names.

    Raises:
        ConfigurationError: a name that no header can have.
    """
    for name in metadata or {}:
        if not NAME.fullmatch(name):
            raise ConfigurationError(
                f"metadata name {name!r} is not possible", remedy="use letters, digits, '-', '_' and '.'"
            )
    return {name.lower(): value for name, value in (metadata or {}).items()}


def encoded(value: str) -> str:
    """A value as S3 takes it: text beyond printable ASCII becomes an encoded word (RFC 2047), as AWS itself does."""
    plain = value.isascii() and value.isprintable() and value == value.strip() and "  " not in value
    if plain and value and not value.startswith("=?"):
        return value
    return f"=?utf-8?b?{base64.b64encode(value.encode()).decode()}?="


def decoded(value: str) -> str:
    """The value that :func:`encoded` was given; what others wrote stays as it is where it is no encoded word."""
    if value == "=?utf-8?b??=":
        return ""
    if "=?" not in value:
        return value
    try:
        return str(make_header(decode_header(value)))
    except (HeaderParseError, LookupError, UnicodeError, ValueError):
        return value
