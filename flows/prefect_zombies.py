"""Runs whose process was killed: Prefect shows them as Running for ever unless an automation looks after them."""

from __future__ import annotations

import httpx

from docmill.failures import ServerNotReady

NAME = "docmill: runs without a heartbeat have crashed"
SILENCE_SECONDS = 90
"""Three heartbeats of 30 s."""


def ensure_zombie_automation(api_url: str) -> None:
    """Make the automation that turns a run into Crashed when its heartbeats stop, unless it is there.

    Raises:
        ServerNotReady: the server refuses it or does not answer.
    """
    over = [f"prefect.flow-run.{state}" for state in ("Completed", "Failed", "Cancelled", "Crashed")]
    automation = {
        "name": NAME,
        "enabled": True,
        "trigger": {
            "type": "event",
            "match": {"prefect.resource.id": "prefect.flow-run.*"},
            "for_each": ["prefect.resource.id"],
            "after": ["prefect.flow-run.heartbeat"],
            "expect": ["prefect.flow-run.heartbeat", *over],
            "posture": "Proactive",
            "threshold": 1,
            "within": SILENCE_SECONDS,
        },
        "actions": [
            {
                "type": "change-flow-run-state",
                "state": "CRASHED",
                "message": "no heartbeat for 90 seconds: its process was killed",
            }
        ],
    }
    try:
        with httpx.Client(base_url=api_url, timeout=30.0, trust_env=False) as client:
            wanted = {"automations": {"name": {"any_": [NAME]}}}
            found = client.post("/automations/filter", json=wanted).raise_for_status().json()
            if not any(each["name"] == NAME for each in found):
                client.post("/automations/", json=automation).raise_for_status()
    except httpx.HTTPError as error:
        raise ServerNotReady(
            f"the local Prefect server did not take an automation: {type(error).__name__}",
            remedy="see logs/prefect-server.log in the data folder, and run docmill up again",
        ) from error
