from serving.supervision.metrics import ServerMetrics
from serving.supervision.watch import Watch


def seen(tokens=0, running=0, prompt=0):
    return ServerMetrics(requests_running=running, generation_tokens_total=tokens, prompt_tokens_total=prompt)


def watched(*looks, watch=None):
    """What each look finds, one every 10 s."""
    watch = watch or Watch(hang_seconds=30, probe_seconds=60, longest_gap_seconds=100)
    return [watch.look(10.0 * number, metrics) for number, metrics in enumerate(looks)]


def test_tokens_that_advance():
    assert not any(watched(*[seen(tokens=n, running=2) for n in range(20)]))
    assert not any(watched(*[seen(prompt=n, running=2) for n in range(20)]))


def test_requests_without_tokens():
    found = watched(*[seen(tokens=5, running=1)] * 4)
    assert found[:3] == [None] * 3
    assert "no token" in found[3]


def test_a_long_quiet_is_not_held_against_the_first_request():
    quiet = [seen(tokens=5)] * 20
    assert not any(watched(*quiet, seen(tokens=5, running=1), seen(tokens=5, running=1), seen(tokens=6, running=1)))


def test_a_request_that_was_given_up():
    looks = [seen(running=1), seen(running=1), seen(), seen(running=1), seen(running=1)]
    assert not any(watched(*looks))


def test_metrics_that_are_not_answered():
    assert not any(watched(None, None, seen(), None, None, seen()))
    assert "/metrics" in watched(None, None, None, None)[-1]


def test_a_probe_is_due_after_a_quiet_time_only():
    watch = Watch(hang_seconds=30, probe_seconds=60, longest_gap_seconds=100)
    due = []
    for number in range(9):
        watch.look(10.0 * number, seen(tokens=7))
        due.append(watch.probe_is_due)
    assert due == [False] * 6 + [True] * 3


def test_an_unanswered_probe_decides_while_gauges_are_frozen_at_zero():
    watch = Watch(hang_seconds=30, probe_seconds=60, longest_gap_seconds=100)
    watch.look(0, seen())
    watch.look(60, seen())
    assert watch.probe_is_due
    watch.probe_sent()
    assert not watch.probe_is_due
    assert [watch.look(60 + after, seen()) for after in (10, 29)] == [None, None]
    assert watch.look(91, seen()) is not None


def test_an_answered_probe():
    watch = Watch(hang_seconds=30, probe_seconds=60, longest_gap_seconds=100)
    watch.look(0, seen())
    watch.look(60, seen())
    watch.probe_sent()
    watch.look(80, seen())
    watch.probe_ended(answered=True)
    assert watch.look(120, seen()) is None
    assert not watch.probe_is_due


def test_a_failed_probe_is_sent_again_and_proof_stays_owed():
    watch = Watch(hang_seconds=30, probe_seconds=60, longest_gap_seconds=100)
    watch.look(0, seen())
    watch.look(60, seen())
    for after in (0, 10, 20):
        assert watch.look(60 + after, seen()) is None
        assert watch.probe_is_due
        watch.probe_sent()
        watch.probe_ended(answered=False)
    assert watch.look(90, seen()) is not None


def test_a_late_probe_under_load_is_no_hang():
    watch = Watch(hang_seconds=30, probe_seconds=60, longest_gap_seconds=100)
    watch.look(0, seen())
    watch.look(60, seen())
    watch.probe_sent()
    assert not any(watch.look(60 + 10 * n, seen(tokens=n, running=50)) for n in range(1, 30))


def test_a_machine_that_was_suspended():
    watch = Watch(hang_seconds=30, probe_seconds=60, longest_gap_seconds=12)
    assert watch.look(0, seen(running=1)) is None
    assert watch.look(10_000, seen(running=1)) is None
    assert watch.look(10_010, seen(tokens=1, running=1)) is None
