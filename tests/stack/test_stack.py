"""The whole stack: up, seen, killed, up again, down, and nothing left."""

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from docmill.failures import ConfigurationError
from flows.local_prefect import LocalPrefect
from flows.prefect_environment import MARK
from flows.prefect_zombies import NAME
from flows.stack import Stack
from storage.embedded.processes import RecordedProcess, processes_marked, spawn
from storage.embedded.state import port_free

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def data_dir() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="docmill-stack-"))
    folder.chmod(0o755)
    yield folder
    Stack(folder).down()
    shutil.rmtree(folder, ignore_errors=True)


def of_the_stack(data_dir: Path) -> set[RecordedProcess]:
    """Every process that has to do with the folder: by mark, working directory, open files or command line."""
    found = set(processes_marked(MARK, str(data_dir)))
    for process in psutil.process_iter():
        try:
            if str(data_dir) in " ".join([process.cwd(), *process.cmdline()]):
                recorded = RecordedProcess.of(process.pid)
                if recorded is not None and process.pid != os.getpid():
                    found.add(recorded)
        except psutil.Error:
            continue
    return found


def ports(data_dir: Path) -> set[int]:
    read = {name: json.loads((data_dir / f"{name}.json").read_text()) for name in ("postgres", "objects", "prefect")}
    objects = set(read["objects"]["ports"].values())
    return {read["postgres"]["port"], read["prefect"]["port"], *objects, *(port + 10_000 for port in objects)}


def states(stack: Stack) -> dict[str, str]:
    return {each.component: each.state for each in stack.status()}


def test_a_life(data_dir):
    stack = Stack(data_dir)
    assert set(states(stack).values()) == {"stopped"}
    said: list[str] = []

    addresses = stack.up(say=said.append)

    _everything_runs(stack, addresses, said)
    _nothing_but_this_machine_is_reached(data_dir)
    assert stack.up() == addresses

    _killed_parts_come_back(stack, addresses)

    # A flow run that opened a session of its own and whose parents have died is a part of the stack too.
    run = spawn(["sleep", "600"], log=data_dir / "logs" / "run.log", environment={MARK: str(data_dir), "PATH": "/bin"})
    everyone = of_the_stack(data_dir)
    assert run.pid in {each.pid for each in everyone}
    assert len(everyone) > 8
    assert not any(map(port_free, ports(data_dir)))

    stack.down()

    run.wait()
    assert of_the_stack(data_dir) == set()
    assert [each for each in everyone if each.alive()] == []
    assert all(map(port_free, ports(data_dir)))
    assert set(states(stack).values()) == {"stopped"}
    stack.down()


def _everything_runs(stack, addresses, said):
    found = {each.component: each for each in stack.status()}
    assert {name: each.state for name, each in found.items()} == dict.fromkeys(found, "running")
    assert set(found) == {"postgres", "objects", "prefect", "worker"}
    assert all(each.pid and each.uptime_seconds < 300 for each in found.values())
    password = addresses.database_url.split(":")[2].split("@")[0]
    assert password not in str(found) + repr(addresses) + str(said)
    assert found["prefect"].url + "/api" == addresses.prefect_api_url
    assert len(said) == 3

    with httpx.Client(base_url=addresses.prefect_api_url, trust_env=False) as prefect:
        pool = prefect.get("/work_pools/docmill").json()
        assert (pool["type"], pool["status"]) == ("process", "READY")
        automations = prefect.post("/automations/filter", json={}).json()
        assert [(each["name"], each["enabled"]) for each in automations] == [(NAME, True)]
        settings = prefect.get("/admin/settings").json()
        assert settings["server"]["analytics_enabled"] is False
        assert settings["server"]["ui"]["show_promotional_content"] is False
        assert settings["server"]["concurrency"]["lease_storage"].endswith("filesystem")
        page = prefect.get(found["prefect"].url + "/dashboard", headers={"Accept": "text/html"})
        assert page.status_code == 200


def _nothing_but_this_machine_is_reached(data_dir):
    for process in of_the_stack(data_dir):
        for each in psutil.Process(process.pid).net_connections("inet"):
            assert each.laddr.ip in ("127.0.0.1", "::1")
            assert not each.raddr or each.raddr.ip in ("127.0.0.1", "::1")
    for log in (data_dir / "logs").iterdir():
        assert "Traceback" not in log.read_text(), log


def _killed_parts_come_back(stack, addresses):
    for each in stack.status():
        os.kill(each.pid, signal.SIGKILL)

    assert stack.up() == addresses
    assert set(states(stack).values()) == {"running"}


def test_parts_that_others_run(data_dir):
    stack = Stack(data_dir, postgres=False, objects=False, prefect=False)

    addresses = stack.up()

    assert (addresses.database_url, addresses.objects, addresses.prefect_api_url) == (None, None, None)
    assert set(states(stack).values()) == {"external"}
    assert of_the_stack(data_dir) == set()


def test_prefect_needs_a_database(data_dir):
    with pytest.raises(ConfigurationError, match="needs a Postgres"):
        Stack(data_dir, postgres=False, objects=False).up()
    with pytest.raises(ConfigurationError, match="needs a Postgres"):
        LocalPrefect(data_dir).start()


def test_down_where_nothing_ever_was(tmp_path):
    Stack(tmp_path / "nowhere").down()

    assert not (tmp_path / "nowhere").exists()
