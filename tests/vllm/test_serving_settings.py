"""``docmill config check`` about ``[serving]``: the environment it names, and a server that others run."""

import json
import sys

import pytest

from serving.vllm.facts import vllm_facts
from serving.vllm.preflight import facts_folder
from storage.embedded.state import free_port

pytestmark = pytest.mark.vllm


@pytest.fixture
def checked(host, monkeypatch):
    """(variables) -> the checks by what they are about."""

    def check(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return {row["what"]: row for row in host.told("config", "check")}

    return check


async def test_the_environment_is_asked_for_its_version(host, checked):
    found = checked()["vllm"]
    facts = await vllm_facts(host.python, facts_folder(host.settings))
    assert found["state"] == "ok" and facts.version in found["found"]


def test_an_environment_without_vllm_is_named(checked):
    found = checked(DOCMILL_SERVING_PYTHON=sys.executable)["vllm"]
    assert found["state"] == "failed" and "serving.python" in found["remedy"]


def test_a_server_says_what_it_serves(checked, row):
    found = checked(DOCMILL_SERVING_BASE_URLS=json.dumps([row.base_url]))[f"model server {row.base_url}"]
    assert (found["state"], found["found"]) == ("ok", "serves tiny")


def test_a_server_that_is_not_there_is_a_failed_check(checked):
    url = f"http://127.0.0.1:{free_port()}"
    found = checked(DOCMILL_SERVING_BASE_URLS=json.dumps([f"{url}/v1"]))[f"model server {url}"]
    assert found["state"] == "failed" and "serving.base_urls" in found["remedy"]
