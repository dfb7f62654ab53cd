"""Which servers this host can ask, and what it says where it can ask none."""

import socket

import pytest
from memory_registry import MemoryRegistry

from docmill.failures import ConfigurationError
from docmill.model_servers import ServerState
from docmill.settings import ServingSettings, Settings
from flows.model_servers import model_server
from flows.server_access import base_url, is_loopback, reachable

HERE = socket.gethostname()


async def ready(registry: MemoryRegistry, host: str, url: str):
    [server_id] = await registry.add_servers("qwen2-vl-7b", host, 1)
    await registry.describe(server_id, base_url=url, served_name="m")
    await registry.enter(server_id, ServerState.READY)
    return await registry.server(server_id)


@pytest.mark.parametrize(
    ("host", "url", "can"),
    [
        (HERE, "http://127.0.0.1:8000", True),
        (HERE, "http://gpu1:8000", True),
        ("elsewhere", "http://127.0.0.1:8000", False),
        ("elsewhere", "http://localhost:8000", False),
        ("elsewhere", "http://[::1]:8000", False),
        ("elsewhere", "http://192.0.2.7:8000", True),
        ("elsewhere", "http://gpu1:8000", True),
    ],
)
async def test_loopback_is_there_for_its_own_host(host, url, can):
    assert reachable(await ready(MemoryRegistry(), host, url)) is can


async def test_a_server_of_another_host_on_loopback_is_named_and_not_asked():
    registry = MemoryRegistry()
    record = await ready(registry, "gpu-host", "http://127.0.0.1:9")
    with pytest.raises(ConfigurationError, match="only gpu-host reaches") as raised:
        async with model_server("qwen2-vl-7b", settings=Settings(serving=ServingSettings()), registry=registry):
            raise AssertionError("it would ask something else")
    assert "serving.host on gpu-host" in raised.value.remedy
    assert (await registry.server(record.id)).leases == 0


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.0.0.9", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("192.0.2.1", False),
        ("gpu1", False),
    ],
)
def test_what_is_loopback(host, loopback):
    assert is_loopback(host) is loopback


def test_every_address_is_none_that_others_can_be_told():
    assert "0.0.0.0" not in base_url("0.0.0.0", 8000) and base_url("::", 8000).endswith(":8000")
    assert base_url("2001:db8::1", 80) == "http://[2001:db8::1]:80" and base_url("gpu1", 80) == "http://gpu1:80"
