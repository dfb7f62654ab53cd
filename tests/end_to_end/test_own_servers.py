"""One's own Postgres, S3 server and Prefect, named in docmill.toml; nothing embedded is started then."""

import asyncio

import psycopg
import pytest

from docmill.settings import load_settings
from flows.resources import s3_store
from storage.embedded.processes import processes_marked

pytestmark = pytest.mark.services


def test_four_lines_of_configuration(
    docmill, tmp_path, receipts, embedded_postgres, object_store_access, monkeypatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    [api] = [part["url"] for part in docmill.json("status") if part["component"] == "prefect"]
    database = embedded_postgres.create_database("own_forms")
    (own / "s3-secret").write_text(object_store_access.secret_key)
    (own / "docmill.toml").write_text(
        f'database.url = "{database}"\n'
        f'objects = {{ endpoint = "{object_store_access.url}", access_key = "{object_store_access.access_key}", '
        f'secret_key_file = "{own}/s3-secret" }}\n'
        f'prefect.api_url = "{api}/api"\n'
    )
    variables = {"DOCMILL_CONFIG": str(own / "docmill.toml"), "DOCMILL_DATA_DIR": str(own / "data")}

    async def upload() -> None:
        store = s3_store(load_settings())
        for path in sorted(receipts(2, 91).iterdir()):
            await store.put("scans", f"inbox/{path.name}", path.read_bytes())
        await store.close()

    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    asyncio.run(upload())

    assert docmill.json("config", "check", code=5, variables=variables)[2]["remedy"] == "docmill up"  # no tables yet
    docmill.run("up", variables=variables)
    assert {part["state"] for part in docmill.json("status", variables=variables)} == {"external"}
    checks = docmill.json("config", "check", variables=variables)
    assert {check["state"] for check in checks} == {"ok"}
    end = docmill.json("ingest", "s3://scans/inbox/", "-t", "receipt", "--here", variables=variables)
    assert end["counts"]["pages_done"] == 2
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM v_documents WHERE status = 'done'").fetchone() == (2,)
    docmill.run("down", variables=variables)
    assert processes_marked("_DOCMILL_STACK", str(own / "data")) == []


@pytest.mark.parametrize(
    ("toml", "what", "told"),
    [
        ('database.url = "postgresql://docmill:wrong@{host}/docmill"', "postgres", "database.url"),
        ('database.url = "postgresql://docmill:x@127.0.0.1:1/docmill"', "postgres", "database.url"),
        (
            'objects = {{ endpoint = "http://127.0.0.1:1", access_key = "a", secret_key = "b" }}',
            "object store",
            "objects",
        ),
        ('prefect.api_url = "http://127.0.0.1:1/api"', "prefect", "prefect.api_url"),
    ],
)
def test_what_does_not_work_is_named_with_its_remedy(docmill, tmp_path, postgres_url, toml, what, told) -> None:
    file = tmp_path / "docmill.toml"
    file.write_text(toml.format(host=postgres_url.split("@")[1].split("/")[0]))
    checks = docmill.json("config", "check", code=5, variables={"DOCMILL_CONFIG": str(file)})
    [found] = [check for check in checks if check["what"] == what]
    assert found["state"] == "failed"
    assert told in found["remedy"]
    assert "wrong" not in str(checks).replace("wrong settings", "")
