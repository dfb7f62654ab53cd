import asyncio
import os
import signal

import pytest
from supervised_server import pids_of

from docmill.model_servers import ServerState

SLEEPY = {"launch": {"can_sleep": True}, "flags": ("--enable-sleep-mode",)}


async def test_an_idle_server_sleeps_and_wakes_for_a_lease(begin):
    stage = await begin(**SLEEPY, idle_sleep_seconds=0.1)
    await stage.until(ServerState.SLEEPING)
    await stage.asleep()
    await stage.lease()
    await stage.until(ServerState.READY)
    assert not (await stage.told())["sleeping"]
    assert (await stage.ask()).status_code == 200
    assert stage.record.restarts == 0


async def test_a_leased_server_does_not_sleep(begin):
    stage = await begin(**SLEEPY, idle_sleep_seconds=0.2)
    lease = await stage.lease()
    await stage.until(ServerState.READY)
    stage.registry.age(100)
    beat = stage.record.heartbeat_at
    await stage.registry.until(stage.server_id, lambda row: row.heartbeat_at > beat)
    assert ServerState.SLEEPING not in stage.registry.states
    await stage.registry.release([lease])
    await stage.until(ServerState.SLEEPING)


async def test_a_server_with_running_requests_does_not_sleep(begin):
    stage = await begin(**SLEEPY, idle_sleep_seconds=0.3)
    await stage.lease()
    await stage.until(ServerState.READY)
    await stage.fault("gauges", running=1)
    await stage.registry.until(stage.server_id, lambda row: row.metrics.get("requests_running") == 1)
    stage.registry.age(10_000)  # the lease is over
    await stage.registry.until(stage.server_id, lambda row: row.leases == 0)
    scraped = stage.record.metrics_at
    await stage.registry.until(stage.server_id, lambda row: row.metrics_at != scraped)
    assert ServerState.SLEEPING not in stage.registry.states
    await stage.fault("gauges")
    await stage.until(ServerState.SLEEPING)


async def test_idle_servers_stop(begin):
    stage = await begin(idle_stop_seconds=0.2)
    assert await stage.ended() is ServerState.STOPPED
    assert stage.registry.states == [ServerState.READY, ServerState.DRAINING, ServerState.STOPPED]
    assert "without leases" in stage.record.message


async def test_sleep_comes_before_the_stop(begin):
    stage = await begin(**SLEEPY, idle_sleep_seconds=0.1, idle_stop_seconds=0.6)
    assert await stage.ended() is ServerState.STOPPED
    assert stage.registry.states == [
        ServerState.READY, ServerState.SLEEPING, ServerState.DRAINING, ServerState.STOPPED
    ]  # fmt: skip


async def test_a_stop_while_it_sleeps(begin):
    stage = await begin(**SLEEPY, idle_sleep_seconds=0.05)
    await stage.until(ServerState.SLEEPING)
    stage.supervisor.drain()
    assert await stage.ended() is ServerState.STOPPED


async def test_a_crash_while_it_sleeps(begin):
    stage = await begin(**SLEEPY, idle_sleep_seconds=0.05)
    record = await stage.until(ServerState.SLEEPING)
    os.kill(record.pid, signal.SIGKILL)
    again = await stage.registry.until(stage.server_id, lambda row: row.restarts == 1 and row.ready_at is not None)
    assert again.restarts == 1


@pytest.mark.parametrize("script", [{"no_sleep": True}, {"sleep_fails": True}])
async def test_a_server_that_cannot_sleep_stays_ready_until_it_stops(begin, script):
    stage = await begin(script, **SLEEPY, idle_sleep_seconds=0.1, idle_stop_seconds=1.0)
    assert await stage.ended() is ServerState.STOPPED
    assert stage.registry.states == [
        ServerState.READY, ServerState.SLEEPING, ServerState.READY, ServerState.DRAINING, ServerState.STOPPED
    ]  # fmt: skip
    assert stage.record.restarts == 0


async def test_a_server_that_does_not_wake_up_is_restarted(begin):
    stage = await begin([{"wake_fails": True}, {}], **SLEEPY, idle_sleep_seconds=0.1)
    await stage.until(ServerState.SLEEPING)
    await stage.lease()
    await stage.until(ServerState.READY, restarts=1)
    (restart,) = await stage.registry.restarts(stage.server_id)
    assert restart.code == "wake_failed"
    assert (await stage.ask()).status_code == 200


async def test_the_development_endpoints_are_had_on_loopback_only(begin):
    flags = ("--enable-sleep-mode", "--host", "0.0.0.0")
    stage = await begin(launch={"can_sleep": True}, flags=flags, idle_sleep_seconds=0.05, idle_stop_seconds=0.5)
    assert await stage.ended() is ServerState.STOPPED
    assert ServerState.SLEEPING not in stage.registry.states


async def test_a_sleeping_server_without_a_database_goes_on_sleeping(begin):
    stage = await begin(**SLEEPY, idle_sleep_seconds=0.05)
    await stage.until(ServerState.SLEEPING)
    stage.registry.away = True
    await asyncio.sleep(0.1)
    stage.registry.away = False
    await stage.lease()
    await stage.until(ServerState.READY)
    assert pids_of(stage.server_id)
