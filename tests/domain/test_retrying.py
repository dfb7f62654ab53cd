"""Retrying is a pure decision."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill import failures
from docmill.failures import DocmillError, ServerOverloaded, failure_of
from docmill.retrying import LONGEST_WAIT_SECONDS, Step, backoff_seconds, decide


def _decide(error, **changed):
    told = {"attempt_no": 1, "max_attempts": 3, "tries": 1, "waited_seconds": 0.0, "patience_seconds": 60.0} | changed
    return decide(failure_of(error), **told)


def test_transient_errors_wait_and_spend_no_attempt():
    assert _decide(failures.ServerNotReady("away"), attempt_no=3).step is Step.WAIT


def test_patience_ends():
    assert _decide(failures.ServerNotReady("away"), waited_seconds=60.0).step is Step.GIVE_UP


def test_retry_after_is_honoured():
    assert _decide(ServerOverloaded("busy", detail={"retry_after": 17})).wait_seconds >= 17


@pytest.mark.parametrize(("attempt_no", "step"), [(1, Step.RESAMPLE), (2, Step.RESAMPLE), (3, Step.GIVE_UP)])
def test_generation_errors_spend_attempts(attempt_no, step):
    assert _decide(failures.EmptyOutput("nothing"), attempt_no=attempt_no).step is step


def test_permanent_and_unexpected_errors_give_up():
    assert _decide(failures.EncryptedDocument("locked")).step is Step.GIVE_UP
    assert _decide(ZeroDivisionError("secret text")).step is Step.GIVE_UP


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_backoff_grows_within_bounds(tries, jitter):
    assert 0 < backoff_seconds(tries, jitter=jitter) <= LONGEST_WAIT_SECONDS
    assert backoff_seconds(tries + 1, jitter=jitter) >= backoff_seconds(tries, jitter=jitter)


def _all(kind):
    ours = [below for below in kind.__subclasses__() if below.__module__ == failures.__name__]
    return [kind, *(each for below in ours for each in _all(below))]


@pytest.mark.parametrize("kind", _all(DocmillError), ids=lambda kind: kind.__name__)
def test_errors_survive_pickling(kind):
    error = pickle.loads(pickle.dumps(kind("what happened", detail={"status": 503})))
    assert type(error) is kind
    assert (error.message, error.detail, error.remedy) == ("what happened", {"status": 503}, kind.default_remedy)


def test_codes_are_unique_and_leaves_name_a_remedy_or_resample():
    kinds = _all(DocmillError)
    assert len({kind.code for kind in kinds}) == len(kinds)
    for kind in kinds:
        if len(_all(kind)) == 1 and kind.disposition is failures.Disposition.GIVE_UP:
            assert kind.default_remedy, kind


def test_unexpected_errors_do_not_quote_their_text():
    failure = failure_of(ValueError("Jane Doe, born 1980"))
    assert failure.code == "unexpected" and "Jane" not in repr(failure) and "ValueError" in failure.message
