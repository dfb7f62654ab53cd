"""A Postgres of our own: it starts, survives, and keeps to itself."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg
import pytest

from docmill.failures import ConfigurationError, DatabaseUnavailable
from storage.embedded.databases import ensure_database
from storage.embedded.postgres import EmbeddedPostgres
from storage.embedded.postgres_binaries import find_binaries, runnable, unprivileged_account
from storage.embedded.processes import processes_in, signal_process, until

pytestmark = pytest.mark.services
PROJECT = Path(__file__).parents[2]


@pytest.fixture
def server(data_dir):
    made = EmbeddedPostgres(data_dir)
    yield made
    made.remove()


def rows(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute("select n from kept order by n")]


def keep(url: str, numbers: range) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("create table if not exists kept (n int)")
        for n in numbers:
            connection.execute("insert into kept values (%s)", [n])


def cluster(server: EmbeddedPostgres) -> Path:
    return server.data_dir / json.loads((server.data_dir / "postgres.json").read_text())["room"] / "data"


def test_a_life(server, listening):
    assert not server.running()
    with pytest.raises(DatabaseUnavailable, match="never started"):
        server.url()

    url = server.start()
    assert server.start() == url == server.url()
    assert server.running()
    keep(url, range(10))
    postmaster = server.process()
    port = psycopg.conninfo.conninfo_to_dict(url)["port"]
    assert listening({postmaster.pid}) == {("127.0.0.1", int(port))}

    server.stop()
    assert not server.running()
    assert not postmaster.alive()
    assert processes_in(cluster(server), "postgres") == []
    server.stop()

    assert server.start() == url
    assert rows(url) == list(range(10))


def test_it_is_safe_and_durable(server):
    url = server.start()
    with psycopg.connect(url) as connection:
        settings = dict(
            connection.execute(
                "select name, setting from pg_settings where name in "
                "('fsync', 'synchronous_commit', 'full_page_writes', 'listen_addresses', 'unix_socket_directories',"
                " 'password_encryption', 'server_encoding', 'TimeZone')"
            ).fetchall()
        )
        words = connection.execute("select lower('ÄÖÜ'), upper('ñ'), 'Éa' ilike 'éA'").fetchone()
        connection.execute("create extension pg_trgm")
        assert connection.execute("select gen_random_uuid() is not null").fetchone() == (True,)

    assert settings == {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "password_encryption": "scram-sha-256",
        "server_encoding": "UTF8",
        "TimeZone": "UTC",
    }
    assert words == ("äöü", "Ñ", True)


def test_the_password_is_needed_and_kept_secret(server):
    url = server.start()
    password = psycopg.conninfo.conninfo_to_dict(url)["password"]

    for wrong in (url.replace(password, "wrong"), url.replace(f":{password}", "")):
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(wrong, connect_timeout=5)

    for process in psutil.process_iter(["cmdline"]):
        assert password not in " ".join(process.info["cmdline"] or [])
    for file in server.data_dir.rglob("*"):
        if file.is_file() and "postgres/data" not in str(file) and password in file.read_text(errors="replace"):
            assert file.name == "postgres.password"
            assert file.stat().st_mode & 0o777 == 0o600


def test_statements_stay_out_of_the_log(server):
    with psycopg.connect(server.start()) as connection, pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute("create table t (v text primary key)")
        connection.execute("insert into t values ('Confidential')")
        connection.execute("insert into t values ('Confidential')")
    server.stop()

    log = server.log.read_text()
    assert "duplicate key" in log
    assert "Confidential" not in log


@pytest.mark.parametrize("everyone", [True, False], ids=["everything-killed", "first-process-killed"])
def test_kill_9_loses_nothing(server, everyone):
    url = server.start()
    keep(url, range(50))
    victims = processes_in(cluster(server), "postgres") if everyone else [server.process()]
    for victim in victims:
        signal_process(victim, signal.SIGKILL)
    assert until(lambda: not server.running(), 10)

    assert server.start() == url
    assert rows(url) == list(range(50))
    assert len({each.pid for each in victims} & {server.process().pid}) == 0


def test_a_pid_file_that_names_a_stranger(server):
    url = server.start()
    server.stop()
    lines = [str(os.getpid()), str(cluster(server)), "1", url.rpartition(":")[2].partition("/")[0], "", "127.0.0.1"]
    (cluster(server) / "postmaster.pid").write_text("\n".join(lines))

    assert server.process() is None
    assert server.start() == url
    assert psutil.pid_exists(os.getpid())


def test_another_port_where_ours_is_taken(server):
    url = server.start()
    keep(url, range(3))
    server.stop()
    port = json.loads((server.data_dir / "postgres.json").read_text())["port"]

    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", port))
        thief.listen()
        other = server.start()
        assert other != url
        assert rows(other) == [0, 1, 2]
    assert server.start() == other


def test_an_initialisation_that_was_killed_is_made_again(server):
    room = server.data_dir / "postgres"
    (room / "data.new").mkdir(parents=True)
    (room / "data.new" / "PG_VERSION").write_text("18")

    server.start()

    assert server.running()
    assert not (room / "data.new").exists()


def test_two_starters_make_one_server(server):
    script = (
        "import sys; from pathlib import Path; from storage.embedded.postgres import EmbeddedPostgres\n"
        "made = EmbeddedPostgres(Path(sys.argv[1])); print(made.start(), made.process().pid)"
    )
    command = [sys.executable, "-c", script, str(server.data_dir)]
    starters = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=PROJECT) for _ in range(2)]
    answers = {starter.communicate()[0] for starter in starters}

    assert [starter.returncode for starter in starters] == [0, 0]
    assert answers == {f"{server.url()} {server.process().pid}\n"}


def test_the_data_folder_can_be_moved(server, data_dir):
    keep(server.start(), range(3))
    server.stop()
    moved = data_dir.with_name(data_dir.name + "-moved")
    data_dir.rename(moved)
    other = EmbeddedPostgres(moved)

    assert rows(other.start()) == [0, 1, 2]
    other.remove()
    moved.rename(data_dir)


def test_data_of_another_version_are_left_alone(server):
    server.start()
    server.stop()
    version = cluster(server) / "PG_VERSION"
    version.write_text("9\n")

    with pytest.raises(ConfigurationError, match="Postgres 9"):
        server.start()
    version.write_text("18\n")


def test_binaries_that_are_not_there(data_dir):
    with pytest.raises(ConfigurationError, match="no Postgres programs in"):
        EmbeddedPostgres(data_dir, binaries=data_dir / "nothing").start()


def test_databases_on_demand(server):
    server.start()

    url = server.create_database("other")

    assert server.create_database("other") == url == ensure_database(server.url(), "other")
    keep(url, range(2))
    assert rows(url) == [0, 1]


def test_a_server_that_is_not_there_is_unavailable():
    with pytest.raises(DatabaseUnavailable):
        ensure_database("postgresql://a:b@127.0.0.1:9/x", "y")


def test_a_folder_closed_to_others(server, data_dir):
    """As root, Postgres is another user, whom a folder like /root keeps out."""
    closed = data_dir / "closed"
    closed.mkdir(mode=0o700)
    hidden = EmbeddedPostgres(closed / "data")

    url = hidden.start()
    keep(url, range(3))
    hidden.stop()

    assert rows(hidden.start()) == [0, 1, 2]
    assert closed.stat().st_mode & 0o777 == 0o700
    place = cluster(hidden)
    hidden.remove()
    assert not place.parent.exists()
    assert closed in place.parents or not place.parents[1].exists()


def test_binaries_closed_to_others_are_copied(data_dir):
    account = unprivileged_account()
    found = find_binaries(None, None)
    closed, package = data_dir / "closed", found.root.parent
    shutil.copytree(found.root, closed / package.name / found.root.name, symlinks=True)
    if package.with_name(f"{package.name}.libs").is_dir():
        shutil.copytree(package.with_name(f"{package.name}.libs"), closed / f"{package.name}.libs")
    closed.chmod(0o700)
    hidden = find_binaries(closed / package.name / found.root.name, 18)

    usable = runnable(hidden, account, data_dir)

    assert usable == hidden if account is None else closed not in usable.root.parents
    assert runnable(hidden, account, data_dir) == usable
    server = EmbeddedPostgres(data_dir / "server", binaries=usable.root)
    server.start()
    assert server.running()
    server.stop()


ORDINARY = """
import os, sys
from pathlib import Path
from psycopg import connect
from storage.embedded.postgres import EmbeddedPostgres
from storage.embedded.postgres_binaries import find_binaries, runnable, unprivileged_account
folder = Path(sys.argv[1])
binaries = runnable(find_binaries(None, None), unprivileged_account(), folder).root
if os.getuid() == 0:  # only now: the interpreter itself may lie where only root can go
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
server = EmbeddedPostgres(folder / "own", binaries=binaries)
with connect(server.start()) as connection:
    connection.execute("select 1")
print(os.stat(folder / "own" / "postgres" / "data").st_uid == os.getuid() != 0)
server.stop()
print(server.running())
"""


def test_an_ordinary_user(data_dir):
    data_dir.chmod(0o777)
    command = [sys.executable, "-c", ORDINARY, str(data_dir)]

    answer = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT)

    assert (answer.stdout, answer.returncode) == ("True\nFalse\n", 0), answer.stderr


def test_sessions_end_with_the_server(server):
    with psycopg.connect(server.start()) as connection:
        connection.execute("select 1")
        server.stop()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")
