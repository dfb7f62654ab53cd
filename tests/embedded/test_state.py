"""Ports, secrets and locks."""

import socket
import subprocess
import sys
import threading

import pytest

from docmill.failures import ConfigurationError
from storage.embedded import state
from storage.embedded.state import free_port, locked, port_free, read_state, secret, write_state


def test_secrets_are_made_once_for_the_owner_only(tmp_path):
    made = secret(tmp_path / "a" / "password")

    assert len(made) == 32
    assert secret(tmp_path / "a" / "password") == made
    assert secret(tmp_path / "another") != made
    assert (tmp_path / "a" / "password").stat().st_mode & 0o777 == 0o600


def test_state_is_kept_and_a_damaged_one_is_none(tmp_path):
    write_state(tmp_path / "state.json", {"port": 1})
    assert read_state(tmp_path / "state.json") == {"port": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["state.json"]

    for damage in ("", "{", "[1]"):
        (tmp_path / "state.json").write_text(damage)
        assert read_state(tmp_path / "state.json") == {}
    assert read_state(tmp_path / "none.json") == {}


def test_a_taken_port_is_not_free():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert not port_free(taken.getsockname()[1])


def test_ports_above_are_free_too():
    port = free_port(also_above=(10_000,), avoid=set())

    assert port_free(port)
    assert port_free(port + 10_000)
    assert port + 10_000 < 65_536


def test_no_port_is_left(monkeypatch):
    monkeypatch.setattr(state, "port_free", lambda _port: False)

    with pytest.raises(ConfigurationError, match="no free port"):
        free_port()


def test_a_lock_is_held_by_one(tmp_path):
    inside, leave, order = threading.Event(), threading.Event(), []

    def first() -> None:
        with locked(tmp_path / "lock"):
            inside.set()
            leave.wait(10)
            order.append("first")

    def second() -> None:
        with locked(tmp_path / "lock"):
            order.append("second")

    one, two = threading.Thread(target=first), threading.Thread(target=second)
    one.start()
    inside.wait(10)
    two.start()
    leave.set()
    one.join()
    two.join()

    assert order == ["first", "second"]


def test_a_killed_holder_lets_go(tmp_path):
    script = (
        "import sys, time; from pathlib import Path; from storage.embedded.state import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "lock")], stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    holder.kill()

    with locked(tmp_path / "lock"):
        pass
    holder.stdout.close()
    holder.wait()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigurationError, match="file"), locked(tmp_path / "file" / "lock"):
        pass
