"""Model servers as an analyst's psql shows them; and a database of before them."""

import math
from uuid import uuid4

import psycopg
import pytest

from docmill.model_servers import ServerState
from storage.migrations import downgrade, upgrade

METRICS = {
    "requests_running": 3,
    "requests_waiting": 12,
    "kv_cache_usage": 0.375,
    "prompt_tokens_total": 5_000_000_000,
    "generation_tokens_total": 1200,
    "requests_succeeded_total": 77,
    "preemptions_total": 2,
    "admission_rejections_total": 1,
    "generation_tokens_per_second": 812.5,
    "prompt_tokens_per_second": 4000.25,
}


async def test_a_server_with_its_metrics(postgres_bench, db) -> None:
    registry = postgres_bench.registry
    taken = await registry.acquire("qwen", "flow", 600, start_on="gpu1")
    await registry.assign_gpus(taken.to_start, [0, 1], 2)
    await registry.describe(taken.to_start, base_url="http://127.0.0.1:8000", metrics=METRICS)
    row = db.row("SELECT * FROM v_model_servers")
    assert {name: row[name] for name in METRICS} == METRICS
    assert (row["server_id"], row["state"], row["is_alive"], row["leases"]) == (taken.to_start, "starting", True, 1)
    assert (row["gpus"], row["base_url"], row["uptime_seconds"]) == ([0, 1], "http://127.0.0.1:8000", None)
    await registry.enter(taken.to_start, ServerState.READY)
    postgres_bench.age(61)
    row = db.row("SELECT * FROM v_model_servers")
    assert row["uptime_seconds"] >= 61
    assert row["is_alive"] is False
    await registry.reap()
    row = db.row("SELECT * FROM v_model_servers")
    assert (row["state"], row["error_code"], row["uptime_seconds"], row["leases"]) == (
        "failed",
        "server_failed",
        None,
        0,
    )


@pytest.mark.parametrize("metrics", [{}, {"requests_running": "many", "kv_cache_usage": math.nan}, {"other": 1}])
async def test_odd_metrics_leave_the_columns_empty(postgres_bench, db, metrics) -> None:
    await postgres_bench.registry.describe(await postgres_bench.ready(), metrics=metrics)
    row = db.row("SELECT * FROM v_model_servers")
    assert {row[name] for name in METRICS} == {None}
    assert row["metrics_at"] is not None


async def test_leases_with_what_they_wait_for(postgres_bench, db) -> None:
    registry = postgres_bench.registry
    server_id = await postgres_bench.ready()
    taken = await registry.acquire("qwen", "flow", 60)
    await registry.begin_request(uuid4(), taken.leases[0], None)
    row = db.row("SELECT * FROM v_model_leases")
    assert (row["server_id"], row["profile"], row["host"], row["holder"]) == (server_id, "qwen", "gpu1", "flow")
    assert (row["is_live"], row["requests_in_flight"]) == (True, 1)
    postgres_bench.age(61)
    assert db.row("SELECT is_live FROM v_model_leases") == {"is_live": False}


async def test_restarts_with_the_pages_that_were_in_flight(postgres_bench, open_document, db) -> None:
    registry = postgres_bench.registry
    server_id = await postgres_bench.ready()
    taken = await registry.acquire("qwen", "flow", 60)
    _, pages = await open_document(2, "in/a.pdf")
    for page in (*pages, None, uuid4()):  # a page that was purged meanwhile is only counted
        await registry.begin_request(uuid4(), taken.leases[0], page)
    for exit_code in (-9, None):
        await registry.record_restart(
            server_id, code="server_restarted", message="died", exit_code=exit_code, log_tail="a\nb"
        )
        postgres_bench.age(1)
    rows = db.rows("SELECT * FROM v_model_restarts ORDER BY happened_at, page_no")
    assert [(row["key"], row["page_no"], row["requests"], row["exit_code"]) for row in rows] == [
        ("in/a.pdf", 1, 4, -9),
        ("in/a.pdf", 2, 4, -9),
        (None, None, 0, None),
    ]
    assert {(row["profile"], row["code"], row["message"], row["log_tail"]) for row in rows} == {
        ("qwen", "server_restarted", "died", "a\nb")
    }
    db.execute("UPDATE batches SET status = 'completed'")
    db.execute("DELETE FROM documents")
    assert db.row("SELECT count(*) AS n FROM v_model_restarts WHERE page_id IS NOT NULL") == {"n": 0}
    assert len(await registry.restarts(server_id)) == 2


async def test_no_odd_text_breaks_a_row(postgres_bench) -> None:
    registry = postgres_bench.registry
    server_id = await postgres_bench.ready("/models/odd \udcff name")
    restart = await registry.record_restart(
        server_id, code="server_restarted", message="a\x00b", exit_code=1, log_tail="\ud800 tail \x00"
    )
    assert restart == (await registry.restarts(server_id))[0]
    assert restart.message == "a\ufffdb"
    await registry.enter(server_id, ServerState.FAILED, message="\x00")
    assert (await registry.server(server_id)).message == "\ufffd"
    again = await registry.acquire("/models/odd \udcff name", "flow \x00", 60, start_on="gpu1")
    assert [record.id for record in await registry.servers(profile="/models/odd \udcff name")] == [again.to_start]


async def test_a_database_of_before_keeps_what_it_has(empty_url) -> None:
    await upgrade(empty_url, "0003")
    with psycopg.connect(empty_url) as connection:
        connection.execute("""
            WITH made AS (
                INSERT INTO model_servers (profile, base_url, host, config_hash, pid)
                VALUES ('qwen', 'http://gpu1:8000', 'gpu1', 'abc', 4711) RETURNING id
            )
            INSERT INTO model_leases (server_id, holder, expires_at)
            SELECT id, 'flow', now() + interval '1 day' FROM made
        """)
    await upgrade(empty_url)
    with psycopg.connect(empty_url) as connection:
        row = connection.execute(
            "SELECT profile, base_url, pid, stop_requested, tensor_parallel_size, leases FROM v_model_servers"
        ).fetchone()
    assert row == ("qwen", "http://gpu1:8000", 4711, "none", 1, 1)
    await downgrade(empty_url, "0003")
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("SELECT profile, pid FROM model_servers").fetchall() == [("qwen", 4711)]
        assert connection.execute("SELECT count(*) FROM model_leases").fetchone() == (1,)
