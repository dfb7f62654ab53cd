"""Servers that others run."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from docmill.failures import ConfigurationError
from docmill.launching import Endpoint


def attached_endpoints(
    base_urls: Sequence[str], api_key: str | None = None, served_name: str | None = None
) -> tuple[Endpoint, ...]:
    """Endpoints of the servers at these addresses, each once, with or without ``/v1`` at the end.

    Args:
        base_urls: ``serving.base_urls``.
        api_key: sent to each of them.
        served_name: what requests put into ``model``; None: the first name that each server lists.

    Raises:
        ConfigurationError: an address is none, or holds a password; the key cannot stand in a header.
    """
    if api_key is not None and not (api_key.isascii() and api_key.isprintable() and api_key.strip() == api_key != ""):
        raise ConfigurationError(
            "the key of the model servers has characters that no header may have",
            remedy="see whether serving.api_key_file holds the key alone",
        )
    addresses = dict.fromkeys(_address(url) for url in base_urls)
    return tuple(Endpoint(base_url=address, served_name=served_name, api_key=api_key) for address in addresses)


def _address(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment:
        raise ConfigurationError(
            "an address in serving.base_urls is not of the form http://host:port", remedy="mend serving.base_urls"
        )
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError(
            f"the address of {parts.hostname} in serving.base_urls holds a password",
            remedy="put the key into a file and name it in serving.api_key_file",
        )
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"
