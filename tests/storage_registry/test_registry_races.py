"""The registry in Postgres with callers that truly overlap: other connections, other processes."""

import asyncio
import pickle
import random
import signal
import sys
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest

from docmill.failures import LeaseLost
from docmill.model_failures import ServerAlreadyUp, ServerInUse
from docmill.model_servers import ServerState
from storage.ledger.model_servers import PostgresServerRegistry

LIVE_ON_DRAINING = """
SELECT count(*) AS n FROM model_leases l JOIN model_servers s ON s.id = l.server_id
WHERE s.state = 'draining' AND l.expires_at > now()
"""


@pytest.fixture
async def registries(url):
    """Eight, each with its own connections."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(PostgresServerRegistry.connect(url, pool_size=3)) for _ in range(8)]


async def test_twenty_acquirers_at_once_start_one_server(registries, db) -> None:
    found = await asyncio.gather(
        *(registries[n % 8].acquire("qwen", f"flow-{n}", 60, start_on=f"gpu{n}") for n in range(20))
    )
    (started,) = [each.to_start for each in found if each.to_start]
    assert {lease.server_id for each in found for lease in each.leases} == {started}
    assert db.row("SELECT count(*) AS leases, count(DISTINCT holder) AS holders FROM model_leases") == {
        "leases": 20,
        "holders": 20,
    }
    assert db.row("SELECT count(*) AS n FROM model_servers") == {"n": 1}


async def test_acquiring_against_draining_never_leases_a_draining_server(registries, db) -> None:
    supervisor, *flows = registries
    outcomes = set()
    for turn in range(25):
        profile = f"qwen-{turn}"
        (server_id,) = await supervisor.add_servers(profile, "gpu1", 1)
        await supervisor.enter(server_id, ServerState.READY)
        order = [
            supervisor.begin_drain(server_id),
            *(flow.acquire(profile, f"{n}", 60) for n, flow in enumerate(flows)),
        ]
        random.Random(turn).shuffle(order)
        results = await asyncio.gather(*order)
        (drained,) = [each for each in results if isinstance(each, bool)]
        leased = [each for each in results if not isinstance(each, bool) and each.leases]
        assert bool(leased) != drained
        assert db.row(LIVE_ON_DRAINING) == {"n": 0}
        outcomes.add(drained)
    assert outcomes == {True, False}  # both sides win at times, or nothing was raced


async def test_renewing_an_expired_lease_against_draining(registries, db) -> None:
    supervisor, flow, *_ = registries
    for turn in range(15):
        profile = f"qwen-{turn}"
        (server_id,) = await supervisor.add_servers(profile, "gpu1", 1)
        taken = await flow.acquire(profile, "slow", 60)
        db.execute("UPDATE model_leases SET expires_at = now() - interval '1 second'")
        gone, drained = await asyncio.gather(flow.renew(taken.leases, 60), supervisor.begin_drain(server_id))
        assert bool(gone) == drained
        assert db.row(LIVE_ON_DRAINING) == {"n": 0}


async def test_acquiring_against_a_stop(registries) -> None:
    operator, *flows = registries
    for turn in range(10):
        profile = f"qwen-{turn}"
        (server_id,) = await operator.add_servers(profile, "gpu1", 1)
        stop, *found = await asyncio.gather(
            operator.request_stop(server_id),
            *(flow.acquire(profile, f"{n}", 60) for n, flow in enumerate(flows)),
            return_exceptions=True,
        )
        leased = [each for each in found if each.leases]
        assert isinstance(stop, ServerInUse) == bool(leased)


async def test_adding_against_acquiring_makes_one_kind_of_start(registries, db) -> None:
    results = await asyncio.gather(
        *(each.add_servers("qwen", "gpu1", 2) for each in registries[:4]),
        *(each.acquire("qwen", f"{n}", 60, start_on="gpu1") for n, each in enumerate(registries[4:])),
        return_exceptions=True,
    )
    added = [each for each in results[:4] if isinstance(each, list)]
    assert all(isinstance(each, list | ServerAlreadyUp) for each in results[:4])
    started = [each.to_start for each in results[4:] if each.to_start]
    assert len(added) + len(started) == 1
    assert db.row("SELECT count(*) AS n FROM model_servers") == {"n": 2 if added else 1}


async def test_profiles_that_assign_gpus_at_once_never_overlap(registries) -> None:
    ids = [(await each.add_servers(f"model-{n}", "gpu1", 1))[0] for n, each in enumerate(registries)]
    found = await asyncio.gather(
        *(each.assign_gpus(server_id, range(8), 3) for each, server_id in zip(registries, ids, strict=True))
    )
    taken = [gpu for gpus in found for gpu in gpus]
    assert sorted(taken) == list(range(6))
    assert sorted(len(gpus) for gpus in found) == [0] * 6 + [3, 3]


async def test_reapers_and_heartbeats_at_once(registries, postgres_bench) -> None:
    """A row that a reaper ended is lost to its supervisor; one that beat before is not reaped: never both."""
    for turn in range(15):
        (server_id,) = await registries[0].add_servers(f"qwen-{turn}", "gpu1", 1)
        postgres_bench.age(61)
        beat, *reaped = await asyncio.gather(
            registries[0].heartbeat(server_id), *(each.reap() for each in registries[1:4]), return_exceptions=True
        )
        ended = [record.id for records in reaped for record in records]
        assert ended == ([server_id] if isinstance(beat, LeaseLost) else [])
        if not ended:
            await registries[0].enter(server_id, ServerState.STOPPED)


async def test_requests_come_and_go_while_leases_do(registries, db) -> None:
    """No deadlock surfaces, nothing is left behind, and the server knows since when it is idle."""
    started = await registries[0].acquire("qwen", "starter", 60, start_on="gpu1")

    async def flow(number: int) -> None:
        registry = registries[number]
        for _ in range(8):
            taken = await registry.acquire("qwen", f"flow-{number}", 60)
            ids = [uuid4() for _ in range(3)]
            await asyncio.gather(*(registry.begin_request(each, taken.leases[0], None) for each in ids))
            await registry.renew(taken.leases, 60)
            await registry.end_request(ids[0])
            await registry.release(taken.leases)

    async def supervisor() -> None:
        for _ in range(8):
            await registries[7].heartbeat(started.to_start)
            await registries[7].reap()
            await registries[7].record_restart(
                started.to_start, code="server_restarted", message="", exit_code=1, log_tail=""
            )

    await asyncio.gather(*(flow(number) for number in range(6)), supervisor())
    await registries[0].release(started.leases)
    assert db.row(
        "SELECT (SELECT count(*) FROM model_leases) AS leases, (SELECT count(*) FROM model_requests) AS r"
    ) == {
        "leases": 0,
        "r": 0,
    }
    assert (await registries[0].server(started.to_start)).restarts == 8
    assert (await registries[0].heartbeat(started.to_start)).leases == 0


HOLDER = """
import asyncio, pickle, sys
from storage.ledger.model_servers import PostgresServerRegistry
from uuid import uuid4

async def main():
    async with PostgresServerRegistry.connect(sys.argv[1], pool_size=1) as registry:
        taken = await registry.acquire("qwen", "doomed", 1.0)
        await registry.begin_request(uuid4(), taken.leases[0], None)
        sys.stdout.buffer.write(pickle.dumps(taken).hex().encode() + b"\\n")
        sys.stdout.flush()
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_killed_holder_lets_go_by_the_databases_clock(postgres_bench, url, db) -> None:
    registry = postgres_bench.registry
    server_id = await postgres_bench.ready()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLDER, url, stdout=asyncio.subprocess.PIPE)
    try:
        line = await process.stdout.readline()
    finally:
        process.kill()
        await process.wait()
    assert process.returncode == -signal.SIGKILL
    taken = pickle.loads(bytes.fromhex(line.decode().strip()))
    assert [lease.server_id for lease in taken.leases] == [server_id]

    db.execute(
        "SELECT pg_sleep(greatest(0, extract(epoch FROM max(expires_at) - clock_timestamp()))) FROM model_leases"
    )
    assert (await registry.heartbeat(server_id)).leases == 0
    assert db.row("SELECT count(*) AS n FROM model_requests") == {"n": 0}
    assert await registry.renew(taken.leases, 60) == {taken.leases[0].id}
    assert await registry.begin_drain(server_id)


async def test_connections_that_were_cut_are_made_anew(postgres_bench, db) -> None:
    registry = postgres_bench.registry
    taken = await registry.acquire("qwen", "flow", 60, start_on="gpu1")
    for _ in range(2):
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'docmill'"
            " AND datname = current_database()"
        )
        await registry.begin_request(uuid4(), taken.leases[0], None)
        await registry.heartbeat(taken.to_start)
    assert (await registry.server(taken.to_start)).leases == 1
