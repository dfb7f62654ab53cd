"""Asking Prefect for a server: which Prefect is asked, and what is said where there is none."""

import pytest
from prefect.settings import PREFECT_API_KEY, PREFECT_API_URL, temporary_settings
from pydantic import SecretStr
from supervised_server import free_port

from docmill.failures import ServerNotReady
from docmill.settings import PrefectSettings, Settings
from flows.keep_warm_runs import ask_keep_warm, server_of


@pytest.fixture
def elsewhere():
    """Prefect's client is pointed to no server."""
    with temporary_settings(restore_defaults={PREFECT_API_URL, PREFECT_API_KEY}):
        yield


def test_the_settings_name_it(elsewhere):
    prefect = PrefectSettings(api_url="http://prefect.example/api", api_key=SecretStr("k"))
    with server_of(Settings(prefect=prefect)):
        assert (PREFECT_API_URL.value(), PREFECT_API_KEY.value()) == ("http://prefect.example/api", "k")
    assert PREFECT_API_URL.value() is None


def test_else_the_local_one(elsewhere, tmp_path):
    settings = Settings(data_dir=tmp_path)
    with pytest.raises(ServerNotReady, match="never started") as raised, server_of(settings):
        raise AssertionError("it would be Prefect's temporary server")
    assert raised.value.remedy == "docmill up"


def test_one_that_it_is_pointed_to_stays():
    prefect = PrefectSettings(api_url="http://other.example/api")
    with temporary_settings({PREFECT_API_URL: "http://of.the.run/api"}), server_of(Settings(prefect=prefect)):
        assert PREFECT_API_URL.value() == "http://of.the.run/api"


async def test_one_that_does_not_answer_is_named(elsewhere):
    settings = Settings(prefect=PrefectSettings(api_url=f"http://127.0.0.1:{free_port()}/api"))
    with pytest.raises(ServerNotReady, match="does not answer") as raised:
        await ask_keep_warm(settings)({"profile": "m"}, "key")
    assert "prefect.api_url" in raised.value.remedy
