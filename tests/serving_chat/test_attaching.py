"""Servers that others run."""

import pytest

from docmill.failures import ConfigurationError
from serving.chat.attaching import attached_endpoints


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("http://gpu1:8000", "http://gpu1:8000"),
        ("http://gpu1:8000/", "http://gpu1:8000"),
        ("http://gpu1:8000/v1", "http://gpu1:8000"),
        ("http://gpu1:8000/v1//", "http://gpu1:8000"),
        (" https://host/models/v1/ ", "https://host/models"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
        ("https://host", "https://host"),
    ],
)
def test_addresses_with_and_without_v1(given, address):
    (endpoint,) = attached_endpoints([given], "key")
    assert (endpoint.base_url, endpoint.api_key, endpoint.served_name, endpoint.server_id) == (
        address,
        "key",
        None,
        None,
    )


def test_the_same_server_counts_once():
    assert len(attached_endpoints(["http://a:1", "http://a:1/v1", "http://b:1/"])) == 2


@pytest.mark.parametrize("wrong", ["http://", "gpu1:8000", "ftp://a", "http://a:99999", "http://a/?q=1", "http://[::1"])
def test_what_is_no_address_is_refused(wrong):
    with pytest.raises(ConfigurationError, match=r"serving\.base_urls"):
        attached_endpoints([wrong])


def test_passwords_in_addresses_are_refused_and_not_quoted():
    with pytest.raises(ConfigurationError, match="api_key_file") as caught:
        attached_endpoints(["http://me:s3cret@host:1/v1"])
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("key", ["", "two\nlines", "schlüssel", " spaced", "tab\t"])
def test_keys_that_no_header_can_hold_are_refused_and_not_quoted(key):
    with pytest.raises(ConfigurationError) as caught:
        attached_endpoints(["http://a:1"], key)
    assert not key or key not in str(caught.value)
