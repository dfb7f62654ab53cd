"""Model servers as operators and Prefect have them: serve, servers, stop, keep-warm, serving-health, status, down."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

import httpx
import psutil
import pytest
from model_files import write_model
from scripted_python import ScriptedPython

from flows.detached_supervisors import MARK
from serving.supervision.orphans import marked_processes
from storage.embedded.processes import processes_marked

pytestmark = pytest.mark.services

FINAL = ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")
ASKS = """
import asyncio, sys
from docmill.chat import ChatRequest
from flows.model_servers import model_server
async def main():
    async with model_server(holder=sys.argv[1]) as server:
        print((await server.chat.ask(ChatRequest(instruction="What is it?", max_tokens=4))).text, flush=True)
        await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""


class Servers:
    """docmill with a model, and a vLLM that is scripted."""

    def __init__(self, docmill, folder: Path) -> None:
        self.docmill = docmill
        self.python = ScriptedPython(folder / "vllm")
        model = write_model(folder / "models" / "tiny")
        self.variables = {
            "DOCMILL_SERVING_PYTHON": str(self.python.path),
            "DOCMILL_SERVING_PROFILE": "tiny",
            "DOCMILL_SERVING_MODELS": json.dumps({"tiny": str(model)}),
            "DOCMILL_SERVING_CPU_KV_CACHE_BYTES": str(2**26),
            "DOCMILL_SERVING_DRAIN_SECONDS": "5",
            "DOCMILL_SERVING_LEASE_SECONDS": "4",
        }

    def run(self, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        return self.docmill.run(*arguments, code=code, variables=self.variables)

    def json(self, *arguments: str):
        return self.docmill.json(*arguments, variables=self.variables)

    def rows(self) -> list[dict]:
        return self.docmill.sql(
            "SELECT server_id::text, profile, state, base_url, leases, restarts, error_code, pid FROM v_model_servers "
            "ORDER BY created_at DESC"
        )

    def holds(self, holder: str, **variables: str) -> subprocess.Popen[str]:
        """A process that holds the model, as a flow does."""
        child = subprocess.Popen(
            [sys.executable, "-c", ASKS, holder], env=self.docmill.environment | self.variables | variables,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.docmill.folder,
        )  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline().startswith("A frame")
        return child

    @cached_property
    def api(self) -> str:
        """Asked for once: `status` also mends rows of servers that are gone."""
        [url] = [part["url"] for part in self.docmill.json("status") if part["component"] == "prefect"]
        return f"{url}/api"

    def start_run(self, name: str, **parameters) -> str:
        deployment = httpx.get(f"{self.api}/deployments/name/{name}/{name}").raise_for_status().json()
        body = {"parameters": parameters, "job_variables": {"env": self.variables}}
        made = httpx.post(f"{self.api}/deployments/{deployment['id']}/create_flow_run", json=body)
        return str(made.raise_for_status().json()["id"])

    def ended(self, run: str) -> dict:
        return wait_for(lambda: (s := self.state(run))["type"] in FINAL and s)

    def state(self, run: str) -> dict:
        return httpx.get(f"{self.api}/flow_runs/{run}").json()["state"]

    def artifacts(self, run: str) -> list[dict]:
        return httpx.post(f"{self.api}/artifacts/filter", json={"artifacts": {"flow_run_id": {"any_": [run]}}}).json()

    def processes(self) -> list[int]:
        mine = {row["server_id"] for row in self.rows()}
        return [each.pid for each in marked_processes() if str(each.server_id) in mine]


def wait_for(what: Callable[[], object], seconds: float = 150.0):
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.2)
    return found


@pytest.fixture
def servers(docmill, tmp_path) -> Iterator[Servers]:
    found = Servers(docmill, tmp_path)
    yield found
    found.run("stop", "--all", "--force")
    assert found.processes() == []


def test_serve_see_refuse_and_stop(servers):
    out = servers.run("serve", "--detach").stdout
    [row] = servers.rows()[:1]
    assert f"ready: {row['base_url']} serves tiny" in out
    assert "already up" in servers.run("serve", "--detach").stdout

    child = servers.holds("a flow")
    try:
        refused = servers.run("stop", "tiny", code=6)
        assert "a flow" in refused.stderr and "--force" in refused.stderr
        listed = servers.run("servers").stdout
        assert "tiny" in listed and "ready" in listed and row["base_url"].removeprefix("http://") in listed
        detail = servers.json("servers", row["server_id"][:8])
        assert [each["name"] for each in detail["holders"]] == ["a flow"] and detail["log"]
        assert detail["server"]["state"] == "ready"
        parts = {part["component"]: part for part in servers.json("status")}
        assert parts["model tiny"]["state"] == "ready" and parts["model tiny"]["url"] == row["base_url"]
        assert "stopped: tiny" in servers.run("stop", row["server_id"][:8], "--force").stdout
    finally:
        child.communicate()
    assert servers.rows()[0]["state"] == "stopped"
    assert servers.json("servers")["servers"] == []


def test_serve_in_the_foreground_is_drained_by_ctrl_c(servers):
    running = servers.docmill.start("serve", "tiny", variables=servers.variables)
    try:
        assert running.stdout is not None
        wait_for(lambda: "ready: http" in running.stdout.readline())
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 0, out + err
    assert "draining" in out and "stopped: stopped by a signal" in out and "Traceback" not in err
    assert servers.rows()[0]["state"] == "stopped" and servers.processes() == []


def test_a_start_that_fails_says_why(servers):
    servers.python.script({"start": "oom"})
    for detach in ([], ["--detach"]):
        failed = servers.run("serve", "tiny", *detach, code=5)
        assert "server_out_of_memory" in failed.stderr and "serving.max_num_seqs" in failed.stderr
        assert "CUDA out of memory" in failed.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["serve", "nonsense"], 4, "model_not_found"),
        (["serve", "/no/such/folder"], 4, "/no/such/folder"),
        (["serve", "tiny", "--tensor-parallel-size", "3"], 2, "parallel_size_impossible"),
        (["serve", "tiny", "--tensor-parallel-size", "many"], 2, "auto"),
        (["serve", "tiny", "--gpus", "a"], 2, "--gpus 0,1"),
        (["serve", "tiny", "--version", "0.24.0"], 2, "--install"),
        (["serve", "--install", "cpu", "--version", "0.1.0"], 2, "0.24"),
        (["stop", "nothing-like-it"], 4, "server_unknown"),
        (["stop"], 2, "--all"),
        (["servers", "nothing-like-it"], 4, "docmill servers"),
    ],
)
def test_wrong_use_is_told_with_its_remedy(servers, arguments, code, told):
    assert told in servers.run(*arguments, code=code).stderr


def test_servers_of_others_are_seen_and_not_started(servers):
    servers.variables["DOCMILL_SERVING_BASE_URLS"] = '["http://127.0.0.1:9/v1"]'
    assert "unreachable" in servers.run("servers").stdout
    assert [each["state"] for each in servers.json("servers")["attached"]] == ["unreachable"]
    assert "serving.base_urls" in servers.run("serve", code=2).stderr
    del servers.variables["DOCMILL_SERVING_BASE_URLS"]


def test_keep_warm_holds_a_server_until_it_is_cancelled(servers):
    run = servers.start_run("keep-warm", profile="tiny")
    row = wait_for(lambda: (r := servers.rows()) and r[0]["state"] == "ready" and r[0]["leases"] and r[0])
    [holder] = servers.docmill.sql("SELECT holder FROM v_model_leases WHERE server_id = %s", row["server_id"])
    assert run[:8] in holder["holder"]
    table = wait_for(lambda: [each for each in servers.artifacts(run) if row["base_url"] in str(each["data"])])
    assert table[0]["key"] == "model-servers-tiny"
    answer = httpx.post(
        f"{servers.api}/flow_runs/{run}/set_state", json={"state": {"type": "CANCELLING", "name": "Cancelling"}}
    )
    assert answer.json()["status"] == "ACCEPT"
    wait_for(lambda: servers.state(run)["type"] == "CANCELLED")
    wait_for(lambda: servers.rows()[0]["leases"] == 0)
    assert servers.rows()[0]["state"] == "ready", "it goes away by its own rules"


def test_a_flow_elsewhere_gets_its_server_by_keep_warm(servers):
    child = servers.holds("far away", DOCMILL_SERVING_START="keep-warm")
    try:
        assert servers.rows()[0]["state"] == "ready"
        runs = httpx.post(
            f"{servers.api}/flow_runs/filter",
            json={"flow_runs": {"name": {"like_": "keep-warm-tiny"}}, "sort": "START_TIME_DESC", "limit": 1},
        ).json()
        assert runs[0]["parameters"]["minutes"] == 1
    finally:
        child.communicate()
    assert servers.ended(runs[0]["id"])["type"] == "COMPLETED"


def test_a_model_that_cannot_start_fails_the_run_by_name(servers):
    servers.python.script({"start": "kv_cache"})
    ended = servers.ended(servers.start_run("keep-warm", profile="tiny", minutes=1))
    assert ended["type"] == "FAILED" and "KV cache" in ended["message"], ended["message"]


def test_serving_health_mends_and_tells(servers):
    servers.run("serve", "--detach")
    row = servers.rows()[0]
    assert servers.ended(servers.start_run("serving-health"))["name"] == "Completed"
    [supervisor] = processes_marked(MARK, servers.docmill.environment["DOCMILL_DATA_DIR"])
    guard = psutil.Process(row["pid"]).parent()
    assert guard is not None
    for pid in (supervisor.pid, guard.pid):
        os.kill(pid, signal.SIGSTOP)
    for pid in (guard.pid, supervisor.pid):
        os.kill(pid, signal.SIGKILL)
    servers.docmill.sql(
        "UPDATE model_servers SET heartbeat_at = now() - interval '1 hour' WHERE id = %s RETURNING id", row["server_id"]
    )
    run = servers.start_run("serving-health")
    assert servers.ended(run)["name"] == "Mended"
    assert servers.processes() == []
    after = servers.rows()[0]
    assert (after["state"], after["error_code"]) == ("failed", "server_failed")
    [artifact] = [each for each in servers.artifacts(run) if each["type"] == "table"]
    assert row["server_id"] in str(artifact["data"])

    def told() -> list:
        wanted = {"filter": {"event": {"name": ["docmill.server.failed"]}}}
        events = httpx.post(f"{servers.api}/events/filter", json=wanted).json()["events"]
        return [each for each in events if row["server_id"] in each["resource"]["prefect.resource.id"]]

    [event] = wait_for(told)
    assert event["payload"]["code"] == "server_failed"


def test_down_ends_model_servers_too(servers):
    servers.run("serve", "--detach")
    assert servers.processes()
    assert "model server tiny has ended" in servers.run("down").stdout
    assert processes_marked(MARK, servers.docmill.environment["DOCMILL_DATA_DIR"]) == []
    servers.docmill.run("up")
    assert servers.rows()[0]["state"] == "stopped" and servers.processes() == []
