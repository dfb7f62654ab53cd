"""The circuit breaker as a pure machine."""

import pytest

from serving.chat.circuit import Circuit, CircuitState


def opened(threshold: int = 3) -> Circuit:
    circuit = Circuit(threshold=threshold)
    for _ in range(threshold):
        circuit.failed(0.0)
    return circuit


def test_it_opens_after_failures_in_a_row():
    circuit = Circuit(threshold=3)
    circuit.failed(0.0)
    circuit.failed(0.0)
    assert circuit.admits
    circuit.failed(0.0)
    assert not circuit.admits and circuit.state is CircuitState.OPEN


def test_a_success_starts_the_count_anew():
    circuit = Circuit(threshold=2)
    circuit.failed(0.0)
    circuit.succeeded()
    circuit.failed(0.0)
    assert circuit.state is CircuitState.CLOSED


def test_a_server_that_is_not_there_opens_it_at_once_and_its_return_closes_it():
    circuit = Circuit(threshold=3)
    circuit.failed(0.0, unreachable=True)
    assert circuit.state is CircuitState.OPEN and circuit.retry_at > 0
    circuit.probed(1.0, well=True)
    assert circuit.state is CircuitState.CLOSED


def test_after_bad_answers_one_request_goes_on_trial():
    circuit = opened()
    circuit.probed(1.0, well=True)
    assert circuit.state is CircuitState.HALF_OPEN
    assert circuit.begin() is True
    assert not circuit.admits
    circuit.succeeded()
    assert circuit.state is CircuitState.CLOSED and circuit.begin() is False


def test_a_failed_trial_opens_it_again():
    circuit = opened()
    circuit.probed(1.0, well=True)
    circuit.begin()
    circuit.failed(2.0)
    assert circuit.state is CircuitState.OPEN and circuit.retry_at > 2.0


def test_a_trial_that_is_given_up_makes_way_for_another():
    circuit = opened()
    circuit.probed(1.0, well=True)
    circuit.begin()
    circuit.abandon()
    assert circuit.admits


def test_failures_of_requests_that_were_under_way_do_not_delay_the_next_probe():
    circuit = opened()
    before = circuit.retry_at
    circuit.failed(100.0)
    assert circuit.retry_at == before


def test_the_wait_between_probes_grows_to_its_limit():
    circuit = Circuit(longest_seconds=0.02)
    circuit.failed(0.0, unreachable=True)
    waits = []
    for _ in range(8):
        circuit.probed(0.0, well=False)
        waits.append(circuit.retry_at)
    assert max(waits) <= 0.02 and waits[-1] == pytest.approx(0.02)
