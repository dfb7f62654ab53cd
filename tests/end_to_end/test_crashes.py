"""Killed, cancelled, two at once: every page has exactly one outcome in the end, and none is read again after it."""

import os
import signal
import time
from collections.abc import Callable

import psutil
import pytest

pytestmark = pytest.mark.services

PAGES = 14


def wait_for(what: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.1)


def done_pages(docmill, source: str) -> int:
    return docmill.sql(
        "SELECT count(*) AS n FROM pages p JOIN batches b ON b.id = p.batch_id "
        "WHERE b.source = %s AND p.status = 'done'",
        source,
    )[0]["n"]


def run_processes(docmill) -> list[psutil.Process]:
    """The processes of flow runs that the worker started."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
            if ("prefect.engine" in words or "flow-run execute" in words) and (
                process.environ().get("DOCMILL_DATA_DIR") == docmill.environment["DOCMILL_DATA_DIR"]
            ):
                found.append(process)
        except psutil.Error:
            continue
    return found


def kill_run(docmill) -> None:
    """kill -9 the flow run and what it started."""
    runs = run_processes(docmill)
    assert runs
    for process in runs:
        for child in [*process.children(recursive=True), process]:
            try:
                os.kill(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def assert_each_page_once(docmill, source: str, pages: int) -> None:
    outcomes = docmill.sql(
        "SELECT p.id, p.status, count(a.id) FILTER (WHERE a.outcome = 'done') AS successes "
        "FROM pages p JOIN readings r ON r.id = p.reading_id JOIN documents d ON d.id = r.document_id "
        "LEFT JOIN attempts a ON a.page_id = p.id WHERE d.bucket = %s GROUP BY p.id, p.status", source,
    )  # fmt: skip
    assert len(outcomes) == pages
    assert {(row["status"], row["successes"]) for row in outcomes} == {("done", 1)}


def test_a_worker_killed_twice_loses_nothing(docmill, receipts):
    source = str(receipts(PAGES, 51))
    for least in (2, 6):
        followed = docmill.start("ingest", source, "-t", "receipt")
        try:
            wait_for(lambda least=least: done_pages(docmill, source) >= least)
            kill_run(docmill)
        finally:
            followed.kill()
            followed.communicate()
    assert 6 <= done_pages(docmill, source) < PAGES

    end = docmill.json("ingest", source, "-t", "receipt", "--here")
    assert end["state"] == "Completed"
    assert end["counts"]["pages_done"] == PAGES, "the same batch goes on"
    assert_each_page_once(docmill, source, PAGES)
    assert len(docmill.sql("SELECT 1 FROM batches WHERE source = %s", source)) == 1


def test_two_at_once_share_the_work(docmill, receipts):
    source = str(receipts(8, 61))
    both = [docmill.start("ingest", source, "-t", "receipt", "--here", "--json") for _ in range(2)]
    for each in both:
        out, err = each.communicate(timeout=240)
        assert each.returncode == 0, out + err
    assert_each_page_once(docmill, source, 8)


def test_an_interrupted_run_gives_its_pages_back(docmill, receipts):
    source = str(receipts(10, 71))
    run = docmill.start("ingest", source, "-t", "receipt", "--here")
    try:
        wait_for(lambda: done_pages(docmill, source) >= 1)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == 130, out + err
    assert "Traceback" not in err
    held = docmill.sql(
        "SELECT count(*) AS n FROM pages p JOIN batches b ON b.id = p.batch_id "
        "WHERE b.source = %s AND p.lease_expires_at > now()", source,
    )  # fmt: skip
    assert held[0]["n"] == 0
    docmill.json("ingest", source, "-t", "receipt", "--here")
    assert_each_page_once(docmill, source, 10)


def test_a_run_cancelled_in_prefect_can_go_on(docmill, receipts):
    source = str(receipts(10, 81))
    run = docmill.start("ingest", source, "-t", "receipt", "--json")
    try:
        wait_for(lambda: done_pages(docmill, source) >= 1)
        [flow_run] = docmill.sql("SELECT flow_run_id FROM batches WHERE source = %s", source)
        cancel(docmill, str(flow_run["flow_run_id"]))
        out, err = run.communicate(timeout=120)
    finally:
        run.kill()
    assert run.returncode == 3 and '"Cancelled"' in out, out + err
    wait_for(lambda: not run_processes(docmill))
    docmill.json("ingest", source, "-t", "receipt", "--here")
    assert_each_page_once(docmill, source, 10)


def cancel(docmill, flow_run_id: str) -> None:
    import httpx

    [ui] = [p["url"] for p in docmill.json("status") if p["component"] == "prefect"]
    answer = httpx.post(
        f"{ui}/api/flow_runs/{flow_run_id}/set_state", json={"state": {"type": "CANCELLING", "name": "Cancelling"}}
    )
    assert answer.json()["status"] == "ACCEPT", answer.text
