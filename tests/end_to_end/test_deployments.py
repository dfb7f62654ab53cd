"""Prefect's side: deployments, schedules and runs that are started from Prefect itself."""

import time

import httpx
import pytest

from flows.deployments import VERSION_VARIABLE, register_deployments

pytestmark = pytest.mark.services


@pytest.fixture
def api(docmill) -> str:
    [ui] = [part["url"] for part in docmill.json("status") if part["component"] == "prefect"]
    return f"{ui}/api"


def deployment(api: str, name: str) -> dict:
    return httpx.get(f"{api}/deployments/name/{name}/{name}").raise_for_status().json()


def test_both_are_registered_with_their_schedule_and_limit(api):
    ingest = deployment(api, "ingest")
    assert [(s["slug"], s["active"], s["schedule"]["cron"]) for s in ingest["schedules"]] == [
        ("nightly", False, "0 2 * * *")
    ]
    assert ingest["concurrency_options"]["collision_strategy"] == "ENQUEUE"
    asked = ingest["parameter_openapi_schema"]["properties"]
    assert sorted(asked, key=lambda name: asked[name]["position"]) == [
        "source",
        "document_type",
        "engine",
        "limit",
        "force",
        "max_failure_rate",
        "workers",
    ]
    assert deployment(api, "reprocess-failed")["parameters"] == {"batch": "last"}


def test_a_schedule_that_was_switched_on_stays_on_when_registered_anew(api, monkeypatch):
    before = deployment(api, "ingest")
    [schedule] = before["schedules"]
    place = f"{api}/deployments/{before['id']}/schedules/{schedule['id']}"
    httpx.patch(place, json={"active": True}).raise_for_status()
    try:
        assert register_deployments(api, "docmill") is False, "nothing has changed"
        monkeypatch.setattr("flows.deployments.deployment_version", lambda: "another")
        assert register_deployments(api, "docmill") is True
        after = deployment(api, "ingest")
        assert after["version"] == "another" and after["schedules"][0]["active"] is True
        assert VERSION_VARIABLE not in str(after)
    finally:
        again = deployment(api, "ingest")
        [schedule] = again["schedules"]
        place = f"{api}/deployments/{again['id']}/schedules/{schedule['id']}"
        httpx.patch(place, json={"active": False}).raise_for_status()
        monkeypatch.undo()
        assert register_deployments(api, "docmill") is True


def test_a_run_started_in_prefect_goes_through_the_worker(api, docmill, receipts):
    made = httpx.post(
        f"{api}/deployments/{deployment(api, 'ingest')['id']}/create_flow_run",
        json={"parameters": {"source": str(receipts(1, 101)), "document_type": "receipt"}},
    ).raise_for_status()
    run = made.json()["id"]
    deadline = time.monotonic() + 180
    while (state := httpx.get(f"{api}/flow_runs/{run}").json()["state"])["type"] not in (
        "COMPLETED",
        "FAILED",
        "CRASHED",
    ):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert state["type"] == "COMPLETED", state["message"]
    [batch] = docmill.sql("SELECT batch_id, pages_done FROM v_batches WHERE flow_run_id = %s", run)
    assert batch["pages_done"] == 1
    artifacts = httpx.post(f"{api}/artifacts/filter", json={"artifacts": {"flow_run_id": {"any_": [run]}}}).json()
    assert {a["type"] for a in artifacts} >= {"progress", "table"}
    [table] = [a for a in artifacts if a["type"] == "table"]
    assert '"pages read"' in table["data"] or "pages read" in str(table["data"])
