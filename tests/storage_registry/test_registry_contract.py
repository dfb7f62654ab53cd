"""What every registry of model servers promises."""

import asyncio
import dataclasses
import inspect
from contextlib import AsyncExitStack
from datetime import timedelta
from uuid import uuid4

import pytest
from memory_registry import MemoryRegistry

from docmill.failures import DatabaseUnavailable, LeaseLost, UnexpectedError
from docmill.model_failures import ServerAlreadyUp, ServerInUse, ServerUnknown
from docmill.model_servers import Acquired, ServerLease, ServerRegistry, ServerState, StopRequest
from storage.ledger.model_servers import PostgresServerRegistry

# --- those who need a server ------------------------------------------------------------------------------------------


async def test_nothing_is_up_and_nobody_starts(registry) -> None:
    assert await registry.acquire("qwen", "flow", 60) == Acquired(())
    assert await registry.servers(live=False) == []


async def test_the_first_starts_and_the_second_joins(registry) -> None:
    first = await registry.acquire("qwen", "one", 60, start_on="gpu1")
    second = await registry.acquire("qwen", "two", 60, start_on="gpu2")
    assert first.to_start is not None
    assert second.to_start is None
    assert [lease.server_id for lease in (*first.leases, *second.leases)] == [first.to_start] * 2
    record = await registry.server(first.to_start)
    assert (record.profile, record.host, record.state, record.leases) == ("qwen", "gpu1", ServerState.STARTING, 2)
    assert (record.base_url, record.served_name, record.restarts, record.gpus) == ("", "", 0, ())
    assert record.stop_requested is StopRequest.NONE


async def test_every_usable_server_is_leased_the_oldest_first(bench) -> None:
    (old,) = await bench.registry.add_servers("qwen", "gpu1", 1)
    ids = {old}
    bench.age(5)
    await bench.registry.begin_drain(old)
    ids.remove(old)
    new = await bench.registry.acquire("qwen", "starter", 60, start_on="gpu1")
    ids.add(new.to_start)
    assert {lease.server_id for lease in new.leases} == ids
    replicas = await bench.registry.add_servers("llama", "gpu1", 3)
    await bench.registry.enter(replicas[0], ServerState.READY)
    await bench.registry.enter(replicas[1], ServerState.SLEEPING)
    taken = await bench.registry.acquire("llama", "flow", 60, start_on="gpu1")
    assert {lease.server_id for lease in taken.leases} == set(replicas)
    assert taken.to_start is None


async def test_profiles_are_apart(registry) -> None:
    one = await registry.acquire("qwen", "flow", 60, start_on="gpu1")
    other = await registry.acquire("qwen-vl", "flow", 60, start_on="gpu1")
    assert one.to_start and other.to_start
    assert [record.id for record in await registry.servers(profile="qwen")] == [one.to_start]


async def test_a_holder_that_asks_again_gets_its_lease_extended(bench) -> None:
    first = await bench.registry.acquire("qwen", "flow", 10, start_on="gpu1")
    again = await bench.registry.acquire("qwen", "flow", 60)
    assert again.leases == first.leases
    bench.age(30)
    assert (await bench.registry.heartbeat(first.to_start)).leases == 1


async def test_a_killed_holder_lets_go_by_expiry(bench) -> None:
    taken = await bench.registry.acquire("qwen", "doomed", 10, start_on="gpu1")
    await bench.registry.heartbeat(taken.to_start)
    bench.age(11)
    orders = await bench.registry.heartbeat(taken.to_start)
    assert (orders.leases, orders.stop) == (0, StopRequest.NONE)
    assert 0.9 <= orders.idle_seconds < 10  # since the expiry, not since the heartbeat
    assert await bench.registry.renew(taken.leases, 10) == {taken.leases[0].id}
    assert await bench.registry.holders(taken.to_start) == []


async def test_an_expired_lease_that_nobody_cleared_is_renewed(bench) -> None:
    taken = await bench.registry.acquire("qwen", "slow", 10, start_on="gpu1")
    bench.age(11)
    assert (await bench.registry.server(taken.to_start)).leases == 0
    assert await bench.registry.renew(taken.leases, 10) == set()
    assert (await bench.registry.server(taken.to_start)).leases == 1


async def test_renewing_tells_which_are_gone(registry) -> None:
    taken = await registry.acquire("qwen", "flow", 60, start_on="gpu1")
    ended = await registry.acquire("llama", "flow", 60, start_on="gpu1")
    await registry.enter(ended.to_start, ServerState.FAILED)
    invented = ServerLease(uuid4(), taken.to_start, "flow")
    gone = await registry.renew([*taken.leases, *ended.leases, invented], 60)
    assert gone == {ended.leases[0].id, invented.id}
    assert await registry.renew([], 60) == set()


async def test_releasing_starts_the_idle_time(bench) -> None:
    taken = await bench.registry.acquire("qwen", "flow", 60, start_on="gpu1")
    bench.age(40)
    assert (await bench.registry.heartbeat(taken.to_start)).idle_seconds == 0
    await bench.registry.release(taken.leases)
    assert (await bench.registry.heartbeat(taken.to_start)).idle_seconds < 20
    bench.age(40)
    assert 40 <= (await bench.registry.heartbeat(taken.to_start)).idle_seconds < 60
    await bench.registry.release(taken.leases)  # twice is no harm
    await bench.registry.release([])
    assert 40 <= (await bench.registry.heartbeat(taken.to_start)).idle_seconds < 60


async def test_a_server_that_nobody_leased_is_idle_since_it_was_made(bench) -> None:
    (server_id,) = await bench.registry.add_servers("qwen", "gpu1", 1)
    bench.age(30)
    assert 30 <= (await bench.registry.heartbeat(server_id)).idle_seconds < 60


async def test_holders_are_named_with_their_ends(bench) -> None:
    first = await bench.registry.acquire("qwen", "one", 60, start_on="gpu1")
    bench.age(1)
    await bench.registry.acquire("qwen", "two", 600)
    named = await bench.registry.holders(first.to_start)
    assert [holder for holder, _ in named] == ["one", "two"]
    assert timedelta(seconds=500) < named[1][1] - named[0][1] < timedelta(seconds=600)


# --- requests and restarts --------------------------------------------------------------------------------------------


async def crash(registry, server_id, *, exit_code: int | None = -9):
    return await registry.record_restart(
        server_id, code="server_restarted", message="the engine died", exit_code=exit_code, log_tail="last words"
    )


async def test_a_restart_notes_what_was_in_flight(bench) -> None:
    registry = bench.registry
    taken = await registry.acquire("qwen", "flow", 60, start_on="gpu1")
    (lease,) = taken.leases
    await registry.describe(lease.server_id, phase="warming", progress=0.5)
    await registry.enter(lease.server_id, ServerState.READY)
    pages = [await bench.page() for _ in range(3)]
    done = uuid4()
    await registry.begin_request(done, lease, pages[0])
    await registry.end_request(done)
    await registry.end_request(done)
    for page in (pages[1], pages[1], pages[2], None):
        await registry.begin_request(uuid4(), lease, page)

    restart = await crash(registry, lease.server_id)
    assert (restart.server_id, restart.code, restart.message) == (
        lease.server_id,
        "server_restarted",
        "the engine died",
    )
    assert (restart.exit_code, restart.log_tail, restart.requests) == (-9, "last words", 4)
    assert restart.page_ids == tuple(sorted(pages[1:]))
    record = await registry.server(lease.server_id)
    assert (record.state, record.restarts, record.phase, record.progress) == (ServerState.STARTING, 1, None, None)
    assert (record.error_code, record.message, record.leases) == ("server_restarted", "the engine died", 1)
    assert [await registry.crashes_of(page) for page in pages] == [0, 1, 1]

    bench.age(1)
    second = await crash(registry, lease.server_id, exit_code=None)
    assert (second.page_ids, second.requests, second.exit_code) == ((), 0, None)  # nothing was left in flight
    listed = await registry.restarts(lease.server_id)
    assert [each.id for each in listed] == [second.id, restart.id]
    assert listed[1].page_ids == restart.page_ids
    assert await registry.restarts(uuid4()) == []


async def test_crashes_count_over_servers_and_afresh_once_reopened(bench) -> None:
    registry = bench.registry
    page = await bench.page()
    for profile in ("qwen", "llama"):
        taken = await registry.acquire(profile, "flow", 60, start_on="gpu1")
        await registry.begin_request(uuid4(), taken.leases[0], page)
        await crash(registry, taken.to_start)
    assert await registry.crashes_of(page) == 2
    bench.reopen(page)
    assert await registry.crashes_of(page) == 0
    assert await registry.crashes_of(uuid4()) == 0


async def test_a_request_that_moves_is_noted_where_it_is(bench) -> None:
    registry = bench.registry
    request, page = uuid4(), await bench.page()
    one = await registry.acquire("qwen", "flow", 60, start_on="gpu1")
    other = await registry.acquire("llama", "flow", 60, start_on="gpu1")
    await registry.begin_request(request, one.leases[0], page)
    await registry.begin_request(request, other.leases[0], page)
    assert (await crash(registry, one.to_start)).requests == 0
    assert (await crash(registry, other.to_start)).page_ids == (page,)


async def test_the_requests_of_a_dead_holder_are_not_suspected(bench) -> None:
    registry = bench.registry
    doomed = await registry.acquire("qwen", "doomed", 10, start_on="gpu1")
    alive = await registry.acquire("qwen", "alive", 600)
    pages = [await bench.page(), await bench.page()]
    await registry.begin_request(uuid4(), doomed.leases[0], pages[0])
    await registry.begin_request(uuid4(), alive.leases[0], pages[1])
    bench.age(11)
    assert (await crash(registry, doomed.to_start)).page_ids == (pages[1],)
    await registry.begin_request(uuid4(), doomed.leases[0], pages[0])  # its lease is gone: nothing is noted
    assert (await crash(registry, doomed.to_start)).requests == 0


async def test_releasing_clears_what_was_in_flight(bench) -> None:
    registry = bench.registry
    taken = await registry.acquire("qwen", "flow", 60, start_on="gpu1")
    await registry.begin_request(uuid4(), taken.leases[0], await bench.page())
    await registry.release(taken.leases)
    assert (await crash(registry, taken.to_start)).requests == 0


# --- a supervisor -----------------------------------------------------------------------------------------------------


async def test_states_and_their_times(bench) -> None:
    registry = bench.registry
    (server_id,) = await registry.add_servers("qwen", "gpu1", 1)
    assert (await registry.server(server_id)).ready_at is None
    await registry.enter(server_id, ServerState.READY)
    ready = await registry.server(server_id)
    assert ready.state is ServerState.READY
    assert ready.ready_at >= ready.created_at
    await registry.enter(server_id, ServerState.SLEEPING)
    await registry.enter(server_id, ServerState.STARTING, error_code="server_fault", message="once more")
    again = await registry.server(server_id)
    assert (again.state, again.error_code, again.message) == (ServerState.STARTING, "server_fault", "once more")
    await registry.enter(server_id, ServerState.READY)
    assert (await registry.server(server_id)).error_code is None
    await registry.enter(server_id, ServerState.FAILED, error_code="server_failed", message="gave up")
    ended = await registry.server(server_id)
    assert (ended.state, ended.error_code, ended.message) == (ServerState.FAILED, "server_failed", "gave up")
    assert ended.ended_at >= ended.ready_at
    assert await registry.servers() == []
    assert [record.id for record in await registry.servers(live=False)] == [server_id]


async def test_an_end_drops_the_leases(registry) -> None:
    taken = await registry.acquire("qwen", "flow", 60, start_on="gpu1")
    await registry.enter(taken.to_start, ServerState.STOPPED)
    assert (await registry.server(taken.to_start)).leases == 0
    assert await registry.holders(taken.to_start) == []
    assert await registry.renew(taken.leases, 60) == {taken.leases[0].id}


async def test_describing_sets_what_may_be_described(bench) -> None:
    registry = bench.registry
    (server_id,) = await registry.add_servers("qwen", "gpu1", 1)
    before = await registry.server(server_id)
    told = {
        "served_name": "qwen2-vl-7b",
        "model": "/models/qwen",
        "base_url": "http://127.0.0.1:8000",
        "config_hash": "abc",
        "phase": "loading",
        "progress": 0.25,
        "pid": 4711,
        "pid_started": 1767225600.125,
        "gpus": (1, 0),
        "tensor_parallel_size": 2,
        "max_model_len": 8192,
        "kv_cache_tokens": 347152,
        "vllm_version": "0.24.0",
        "error_code": "x",
        "message": "half \x00 way",
        "log_path": "/var/log/server.log",
        "metrics": {"requests_running": 3, "kv_cache_usage": 0.5},
    }
    await registry.describe(server_id, **told)
    after = await registry.server(server_id)
    assert {name: getattr(after, name) for name in told if name != "message"} == {
        name: value for name, value in told.items() if name != "message"
    }
    assert after.message.startswith("half ")
    assert after.metrics_at is not None
    assert after.heartbeat_at >= before.heartbeat_at
    await registry.describe(server_id, phase=None, pid=None)
    last = await registry.server(server_id)
    assert (last.phase, last.pid, last.metrics_at) == (None, None, after.metrics_at)
    for name in ("id", "state", "heartbeat_at", "restarts", "leases", "password"):
        with pytest.raises(UnexpectedError, match=name):
            await registry.describe(server_id, **{name: None})


async def test_describing_keeps_a_server_fresh(bench) -> None:
    (server_id,) = await bench.registry.add_servers("qwen", "gpu1", 1)
    bench.age(50)
    await bench.registry.describe(server_id, phase="loading")
    bench.age(50)
    assert await bench.registry.reap() == []


async def test_a_row_that_has_ended_is_lost_to_its_supervisor(bench) -> None:
    registry = bench.registry
    ended = await bench.ready()
    await registry.enter(ended, ServerState.STOPPED)
    before = await registry.server(ended)
    for server_id in (ended, uuid4()):
        for call in (
            registry.heartbeat(server_id),
            registry.describe(server_id, phase="loading"),
            registry.enter(server_id, ServerState.READY),
            registry.enter(server_id, ServerState.FAILED, message="late"),
            registry.begin_drain(server_id),
            registry.begin_drain(server_id, force=True),
            registry.assign_gpus(server_id, [0], 1),
            crash(registry, server_id),
        ):
            with pytest.raises(LeaseLost, match="has ended"):
                await call
    assert await registry.server(ended) == before
    assert await registry.restarts(ended) == []


# --- draining and stopping --------------------------------------------------------------------------------------------


async def test_draining_waits_for_leases(bench) -> None:
    registry = bench.registry
    server_id = await bench.ready()
    taken = await registry.acquire("qwen", "flow", 60)
    assert not await registry.begin_drain(server_id)
    assert (await registry.server(server_id)).state is ServerState.READY
    await registry.release(taken.leases)
    assert await registry.begin_drain(server_id)
    assert await registry.begin_drain(server_id)
    assert (await registry.server(server_id)).state is ServerState.DRAINING
    assert await registry.acquire("qwen", "flow", 60) == Acquired(())


async def test_draining_by_force_leaves_the_leases_to_end(bench) -> None:
    registry = bench.registry
    server_id = await bench.ready()
    taken = await registry.acquire("qwen", "flow", 60)
    assert await registry.begin_drain(server_id, force=True)
    assert await registry.renew(taken.leases, 60) == set()
    assert (await registry.heartbeat(server_id)).leases == 1
    assert (await registry.acquire("qwen", "flow", 60)).leases == ()


async def test_an_expired_lease_does_not_hold_up_and_is_not_renewed_after(bench) -> None:
    registry = bench.registry
    server_id = await bench.ready()
    taken = await registry.acquire("qwen", "doomed", 10)
    bench.age(11)
    assert await registry.begin_drain(server_id)
    assert await registry.renew(taken.leases, 60) == {taken.leases[0].id}


@pytest.mark.parametrize("state", [ServerState.READY, ServerState.STARTING, ServerState.SLEEPING])
async def test_a_draining_row_drains_until_it_ends(bench, state) -> None:
    """A start that finishes while the drain has begun already must not bring leases back."""
    registry = bench.registry
    (server_id,) = await registry.add_servers("qwen", "gpu1", 1)
    await registry.begin_drain(server_id)
    await registry.enter(server_id, state)
    await crash(registry, server_id)
    record = await registry.server(server_id)
    assert (record.state, record.restarts, record.ready_at) == (ServerState.DRAINING, 1, None)
    await registry.enter(server_id, ServerState.STOPPED)
    assert (await registry.server(server_id)).state is ServerState.STOPPED


async def test_a_stop_is_refused_while_leases_are_live(bench) -> None:
    registry = bench.registry
    server_id = await bench.ready()
    await registry.acquire("qwen", "nightly-run", 60)
    with pytest.raises(ServerInUse, match="nightly-run"):
        await registry.request_stop(server_id)
    assert (await registry.heartbeat(server_id)).stop is StopRequest.NONE
    assert len((await registry.acquire("qwen", "other", 60)).leases) == 1
    stopped = await registry.request_stop(server_id, force=True)
    assert (stopped.id, stopped.stop_requested, stopped.leases) == (server_id, StopRequest.FORCE, 2)
    assert (await registry.heartbeat(server_id)).stop is StopRequest.FORCE


async def test_a_server_that_is_to_stop_gets_no_new_lease(bench) -> None:
    registry = bench.registry
    server_id = await bench.ready()
    stopped = await registry.request_stop(server_id)
    assert (stopped.state, stopped.stop_requested) == (ServerState.READY, StopRequest.DRAIN)
    assert await registry.acquire("qwen", "flow", 60) == Acquired(())
    fresh = await registry.acquire("qwen", "flow", 60, start_on="gpu2")
    assert fresh.to_start not in (None, server_id)
    assert (await registry.request_stop(server_id, force=True)).stop_requested is StopRequest.FORCE
    assert (await registry.request_stop(server_id)).stop_requested is StopRequest.FORCE


async def test_an_expired_lease_does_not_hold_up_a_stop(bench) -> None:
    registry = bench.registry
    server_id = await bench.ready()
    taken = await registry.acquire("qwen", "doomed", 10)
    bench.age(11)
    assert (await registry.request_stop(server_id)).stop_requested is StopRequest.DRAIN
    assert await registry.renew(taken.leases, 60) == {taken.leases[0].id}


async def test_stopping_what_has_ended_changes_nothing(bench) -> None:
    server_id = await bench.ready()
    await bench.registry.enter(server_id, ServerState.STOPPED)
    before = await bench.registry.server(server_id)
    assert await bench.registry.request_stop(server_id, force=True) == before
    with pytest.raises(ServerUnknown):
        await bench.registry.request_stop(uuid4())
    with pytest.raises(ServerUnknown):
        await bench.registry.server(uuid4())


async def test_servers_are_added_only_where_none_is_up(bench) -> None:
    registry = bench.registry
    ids = await registry.add_servers("qwen", "gpu1", 2)
    assert len(set(ids)) == 2
    with pytest.raises(ServerAlreadyUp, match="gpu1"):
        await registry.add_servers("qwen", "gpu2", 1)
    for server_id in ids:
        await registry.enter(server_id, ServerState.STOPPED)
    (last,) = await registry.add_servers("qwen", "gpu2", 1)
    bench.age(61)
    (after,) = await registry.add_servers("qwen", "gpu2", 1)  # the other has lost its supervisor
    assert [record.id for record in await registry.servers()] == [after]
    assert (await registry.server(last)).state is ServerState.FAILED


# --- silence ----------------------------------------------------------------------------------------------------------


async def test_a_stale_heartbeat_makes_a_failure_and_a_new_starter(bench) -> None:
    registry = bench.registry
    first = await registry.acquire("qwen", "one", 600, start_on="gpu1")
    await registry.enter(first.to_start, ServerState.READY)
    bench.age(59)
    assert (await registry.acquire("qwen", "two", 600, start_on="gpu1")).to_start is None
    bench.age(2)
    second = await registry.acquire("qwen", "two", 600, start_on="gpu1")
    assert second.to_start not in (None, first.to_start)
    lost = await registry.server(first.to_start)
    assert (lost.state, lost.error_code, lost.leases) == (ServerState.FAILED, "server_failed", 0)
    assert "gpu1" in lost.message
    assert lost.ended_at is not None
    assert await registry.renew(first.leases, 60) == {first.leases[0].id}
    with pytest.raises(LeaseLost):
        await registry.heartbeat(first.to_start)


async def test_reaping_returns_those_that_fell_silent(bench) -> None:
    registry = bench.registry
    silent = await registry.acquire("qwen", "flow", 600, start_on="gpu1")
    await registry.describe(silent.to_start, pid=4711)
    bench.age(30)
    alive = await registry.acquire("llama", "flow", 10, start_on="gpu1")
    ended = await registry.acquire("phi", "flow", 10, start_on="gpu1")
    await registry.enter(ended.to_start, ServerState.STOPPED)
    assert await registry.reap() == []
    bench.age(31)
    (reaped,) = await registry.reap()
    assert (reaped.id, reaped.state, reaped.pid, reaped.host) == (silent.to_start, ServerState.FAILED, 4711, "gpu1")
    assert await registry.reap() == []
    assert await registry.renew(alive.leases, 60) == {alive.leases[0].id}  # expired, and cleared
    (strict,) = await registry.reap(stale_seconds=20)
    assert strict.id == alive.to_start


# --- GPUs -------------------------------------------------------------------------------------------------------------


async def test_gpus_are_taken_once_the_lowest_first(bench) -> None:
    registry = bench.registry
    one, two, three = [(await registry.add_servers(name, "gpu1", 1))[0] for name in ("a", "b", "c")]
    (elsewhere,) = await registry.add_servers("d", "gpu2", 1)
    assert await registry.assign_gpus(one, [3, 1, 0, 2], 2) == (0, 1)
    assert await registry.assign_gpus(two, [0, 1, 2, 3], 1) == (2,)
    assert await registry.assign_gpus(three, [0, 1, 2, 3], 2) == ()
    assert (await registry.server(three)).gpus == ()
    assert await registry.assign_gpus(elsewhere, [0, 1], 2) == (0, 1)
    assert await registry.assign_gpus(one, [1, 3], 2) == (1, 3)  # its own are free to it
    assert await registry.assign_gpus(one, [1, 2], 2) == ()
    assert (await registry.server(one)).gpus == (1, 3)
    await registry.enter(two, ServerState.STOPPED)
    assert await registry.assign_gpus(three, [0, 1, 2, 3], 2) == (0, 2)
    assert await registry.assign_gpus(three, [0, 2], 0) == ()


async def test_a_server_that_fell_silent_holds_no_gpu(bench) -> None:
    registry = bench.registry
    (silent,) = await registry.add_servers("a", "gpu1", 1)
    await registry.assign_gpus(silent, [0], 1)
    bench.age(61)
    (server_id,) = await registry.add_servers("b", "gpu1", 1)
    assert await registry.assign_gpus(server_id, [0], 1) == (0,)
    with pytest.raises(LeaseLost):
        await registry.heartbeat(silent)


# --- several at once --------------------------------------------------------------------------------------------------


async def test_of_many_at_once_one_starts(registry) -> None:
    found = await asyncio.gather(*(registry.acquire("qwen", f"flow-{n}", 60, start_on="gpu1") for n in range(20)))
    (started,) = [each.to_start for each in found if each.to_start]
    assert {lease.server_id for each in found for lease in each.leases} == {started}
    assert len({lease.id for each in found for lease in each.leases}) == 20
    (record,) = await registry.servers()
    assert (record.id, record.leases) == (started, 20)


async def test_records_are_listed_the_newest_first(bench) -> None:
    registry = bench.registry
    ids = []
    for profile in ("a", "b", "c"):
        ids += await registry.add_servers(profile, "gpu1", 1)
        bench.age(1)
    records = await registry.servers()
    assert [record.id for record in records] == ids[::-1]
    assert records[0] == await registry.server(ids[-1])
    assert dataclasses.asdict(records[0])["leases"] == 0


# --- the contract itself ----------------------------------------------------------------------------------------------

METHODS = sorted(name for name in vars(ServerRegistry) if not name.startswith("_"))


@pytest.mark.parametrize("kind", [MemoryRegistry, PostgresServerRegistry])
@pytest.mark.parametrize("name", METHODS)
def test_both_are_called_as_the_contract_says(kind, name) -> None:
    assert inspect.signature(getattr(kind, name)) == inspect.signature(getattr(ServerRegistry, name))


@pytest.mark.parametrize("kind", [MemoryRegistry, PostgresServerRegistry])
async def test_a_database_that_is_away_is_passing_trouble(kind) -> None:
    async with AsyncExitStack() as stack:
        if kind is MemoryRegistry:
            registry = MemoryRegistry()
            registry.away = True
        else:
            nowhere = "postgresql://nobody@127.0.0.1:1/none"
            registry = await stack.enter_async_context(PostgresServerRegistry.connect(nowhere))
        lease = ServerLease(uuid4(), uuid4(), "flow")
        for call in (
            registry.acquire("qwen", "flow", 60),
            registry.renew([lease], 60),
            registry.release([lease]),
            registry.begin_request(uuid4(), lease, None),
            registry.end_request(uuid4()),
            registry.crashes_of(uuid4()),
            registry.server(uuid4()),
            registry.servers(),
            registry.holders(uuid4()),
            registry.restarts(uuid4()),
            registry.add_servers("qwen", "gpu1", 1),
            registry.request_stop(uuid4()),
            registry.reap(),
            registry.assign_gpus(uuid4(), [0], 1),
            registry.describe(uuid4(), phase="loading"),
            registry.heartbeat(uuid4()),
            registry.enter(uuid4(), ServerState.READY),
            registry.begin_drain(uuid4()),
            crash(registry, uuid4()),
        ):
            with pytest.raises(DatabaseUnavailable):
                await call
