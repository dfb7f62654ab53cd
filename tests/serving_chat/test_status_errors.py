"""From status to error."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill import failures, model_failures
from docmill.failures import Disposition
from serving.chat.status_errors import BODY_CHARACTERS, error_of_status, kept_body, retry_after_seconds

TABLE = {
    307: failures.ConfigurationError,
    400: model_failures.BadRequest,
    401: model_failures.ServerRefused,
    403: model_failures.ServerRefused,
    404: model_failures.ServedNameUnknown,
    408: failures.RequestTimeout,
    413: model_failures.BadRequest,
    422: model_failures.BadRequest,
    429: failures.ServerOverloaded,
    500: model_failures.ServerFault,
    502: model_failures.ServerFault,
    503: failures.ServerOverloaded,
    504: model_failures.ServerFault,
}


@pytest.mark.parametrize(("status", "kind"), TABLE.items())
def test_each_status_has_its_error_with_body_and_server(status, kind):
    error = error_of_status(status, "what it said", server="http://h:1", model="m")
    assert type(error) is kind
    assert error.detail == {"status": status, "body": "what it said", "server": "http://h:1"}
    assert "what it said" not in str(error)


@given(st.integers(300, 599))
def test_every_status_is_transient_or_given_up(status):
    error = error_of_status(status, "", server="s", model="m")
    assert error.disposition is (Disposition.RETRY if status in (408, 429) or status >= 500 else Disposition.GIVE_UP)


def test_an_unknown_name_names_what_there_is():
    assert "qwen, other" in str(error_of_status(404, "", server="s", model="m", listed=("qwen", "other")))


def test_pictures_are_cut_out_of_bodies_and_the_rest_is_whole():
    picture = "data:image/png;base64," + "iVBORw0KGgo/+A" * 50 + "=="
    kept = kept_body(f'{{"msg":"wrong","input":"{picture}","loc":["body"]}}')
    assert "iVBOR" not in kept
    assert kept == f'{{"msg":"wrong","input":"[picture, {len(picture)} characters]","loc":["body"]}}'


def test_cut_off_and_escaped_pictures_are_cut_out_too():
    assert "AAAA" not in kept_body("data:image\\/jpeg;base64,\\/9j\\/AAAAAA")
    assert "AAAA" not in kept_body("input_value=" + "AAAA" * 200)


def test_bodies_are_bounded():
    kept = kept_body("word " * 10_000)
    assert len(kept) < BODY_CHARACTERS + 40 and kept.endswith("(50000 characters)")


def test_bodies_up_to_the_bound_are_whole():
    body = "a b " * (BODY_CHARACTERS // 4)
    assert kept_body(body) == body


NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("17", 17.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30.0),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0.0),
        ("Sun, 01 Mar 2026 12:00:30 -0000", 30.0),
        ("soon", None),
        ("inf", None),
        ("nan", None),
        (None, None),
    ],
)
def test_retry_after_in_both_forms(value, seconds):
    assert retry_after_seconds(value, now=NOW) == seconds
