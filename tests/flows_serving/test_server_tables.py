"""Model servers on a terminal."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from console import output, server_tables
from console.server_tables import lasted, print_servers, state_of
from console.start_progress import PHASES, position
from docmill.model_servers import ServerRecord, ServerState
from flows.attached_servers import AttachedServer


def record(**changes) -> ServerRecord:
    now = datetime.now(UTC)
    facts = {
        "profile": "qwen2.5-vl-72b", "served_name": "x", "model": "/m", "base_url": "http://127.0.0.1:29123",
        "state": ServerState.READY, "host": "gpu1", "config_hash": "", "created_at": now, "heartbeat_at": now,
        "ready_at": now - timedelta(hours=31), "gpus": (0, 1), "restarts": 3, "leases": 12,
        "metrics": {"requests_running": 128, "requests_waiting": 64, "generation_tokens_per_second": 5123.4,
                    "kv_cache_usage": 0.873},
    }  # fmt: skip
    return ServerRecord(id=uuid4(), **(facts | changes))


@pytest.mark.parametrize("width", [80, 120])
def test_a_table_is_whole_at_any_width(monkeypatch, capsys, width):
    for module in (output, server_tables):
        monkeypatch.setattr(module.console, "_width", width)
    starting = record(state=ServerState.STARTING, phase="compiling", progress=0.45, ready_at=None, base_url="")
    theirs = AttachedServer("http://theirs:8000", "unreachable", error="no connection")
    print_servers([record(), starting], [theirs])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and all(len(line.rstrip()) <= width for line in lines)
    assert "http://theirs:8000: no connection" in lines[4]
    for told in ("qwen2.5-vl-72b", "127.0.0.1:29123", "1d07h", "128+64", "5123", "87%", "12"):
        assert told in lines[1]
    assert "compiling 45%" in lines[2] and "unreachable" in lines[3]
    assert ("0,1" in lines[1]) is (width >= 100)


def test_a_silent_supervisor_is_told():
    heard = datetime.now(UTC) - timedelta(seconds=90)
    assert state_of(record(heartbeat_at=heard)) == "ready, silent 1m30s"
    assert state_of(record(heartbeat_at=heard, state=ServerState.STOPPED)) == "stopped"


def test_a_name_cannot_steer_the_terminal(capsys):
    print_servers([record(profile="evil\x1b[2J[red]")], [])
    assert "\x1b[2J" not in (told := capsys.readouterr().out) and "[red]" in told


@pytest.mark.parametrize(
    ("seconds", "told"), [(0, "0s"), (59, "59s"), (61, "1m01s"), (7380, "2h03m"), (90000, "1d01h")]
)
def test_durations(seconds, told):
    assert lasted(seconds) == told


def test_states():
    assert state_of(record(state=ServerState.STARTING, phase="loading", progress=None)) == "loading"
    assert state_of(record(state=ServerState.DRAINING)) == "draining"


def test_a_start_only_goes_forward():
    places = [position(phase, share) for phase in PHASES for share in (0.0, 0.5, 1.0)]
    assert places == sorted(places) and places[-1] == 1.0
    assert position("restarting", None) is None
