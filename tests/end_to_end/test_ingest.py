"""Scans in a bucket become typed rows, and nothing is lost on the way."""

import asyncio
import json

import pytest

from docmill.settings import load_settings
from docmill.synthesis.__main__ import write_set
from docmill.synthesis.documents import Kind
from docmill.synthesis.files import Format
from flows.resources import s3_store

pytestmark = pytest.mark.services


@pytest.fixture
def upload(docmill, monkeypatch):
    """Puts the files of a folder into the embedded S3 server, below a prefix."""
    monkeypatch.setenv("DOCMILL_DATA_DIR", docmill.environment["DOCMILL_DATA_DIR"])

    def put(folder, prefix):
        async def all_of_them():
            store = s3_store(load_settings())
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    await store.put("forms", f"{prefix}/{path.relative_to(folder)}", path.read_bytes())
            await store.close()

        asyncio.run(all_of_them())
        return f"s3://forms/{prefix}/"

    return put


def test_bucket_to_rows_through_a_worker(docmill, upload, receipts):
    folder = receipts(3, 11)
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing else")
    (folder / "empty.jpg").write_bytes(b"")
    source = upload(folder, "first")

    end = docmill.json("ingest", source, "--type", "receipt", "--max-failure-rate", "0.5")
    assert end["state"] == "Completed"
    assert (end["counts"]["documents_total"], end["counts"]["pages_done"]) == (5, 3)
    assert {f["code"] for f in end["failures"]} == {"unreadable_document", "empty_document"}
    assert all(f["remedy"] for f in end["failures"])

    # as an analyst sees it: no JSON, typed columns
    rows = docmill.sql(
        "SELECT key, name, value_text, value_number, value_date, confidence, box FROM v_fields "
        "WHERE batch_id = %s AND row IS NULL", end["batch_id"],
    )  # fmt: skip
    totals = [row for row in rows if row["name"] == "total"]
    assert len(totals) == 3
    assert all(row["value_number"] > 0 and len(row["box"]) == 4 for row in totals)
    assert sum(row["value_date"] is not None for row in rows if row["name"] == "date") == 3
    failures = docmill.sql(
        "SELECT code, count(*) AS n FROM v_failures WHERE batch_id = %s GROUP BY code", end["batch_id"]
    )
    assert {row["code"]: row["n"] for row in failures} == {"unreadable_document": 1, "empty_document": 1}
    speed = docmill.sql("SELECT pages, pages_per_second FROM v_throughput WHERE batch_id = %s", end["batch_id"])
    assert speed[0]["pages"] == 3 and speed[0]["pages_per_second"] > 0

    # again: nothing is new, and nothing was read
    again = docmill.json("ingest", source, "--type", "receipt", "--max-failure-rate", "0.5")
    assert again["counts"]["documents_unchanged"] == 5 and again["counts"]["documents_total"] == 0
    assert docmill.sql("SELECT 1 FROM attempts WHERE batch_id = %s", again["batch_id"]) == []

    # another version of one object, and one more: only these
    more = receipts(2, 12)
    one, other = sorted(more.iterdir())
    one.rename(more / sorted(path.name for path in folder.glob("*.jpg"))[1])
    other.rename(more / "new.jpg")
    upload(more, "first")
    third = docmill.json("ingest", source, "--type", "receipt", "--max-failure-rate", "0.5")
    assert third["counts"]["documents_total"] == 2 and third["counts"]["documents_unchanged"] == 4


def test_limit_and_force(docmill, receipts):
    folder = receipts(3, 21)
    first = docmill.json("ingest", str(folder), "-t", "receipt", "--limit", "2")
    assert first["counts"]["documents_total"] == 2
    rest = docmill.json("ingest", str(folder), "-t", "receipt")
    assert (rest["counts"]["documents_total"], rest["counts"]["documents_unchanged"]) == (1, 2)
    forced = docmill.json("ingest", str(folder), "-t", "receipt", "--force")
    assert forced["counts"]["documents_total"] == 3 and forced["counts"]["pages_done"] == 3


def test_past_the_failure_rate_the_run_is_failed_and_can_be_reprocessed(docmill, tmp_path, receipts):
    folder = receipts(1, 31)
    for name in ("a.pdf", "b.pdf"):
        (folder / name).write_bytes(b"%PDF-1.4\nbroken")
    end = docmill.json("ingest", str(folder), "-t", "receipt", code=3)
    assert end["state"] == "Failed" and "failure rate 67%" in end["message"]
    batch = docmill.sql("SELECT status FROM v_batches WHERE batch_id = %s", end["batch_id"])
    assert batch[0]["status"] == "failed"

    again = docmill.json("reprocess", end["batch_id"][:8], "--code", "unreadable_document", code=3)
    assert again["batch_id"] != end["batch_id"]
    assert again["counts"]["documents_total"] == 2 and again["counts"]["documents_unopened"] == 2
    open_now = docmill.json("failures", again["batch_id"])
    assert sorted(row["key"] for row in open_now) == ["a.pdf", "b.pdf"]
    assert docmill.json("failures", end["batch_id"]) == []


def test_in_this_process(docmill, receipts):
    end = docmill.json("ingest", str(receipts(1, 41)), "-t", "receipt", "--here")
    assert end["state"] == "Completed" and end["counts"]["pages_done"] == 1


def test_a_document_of_many_pages_is_merged(docmill, tmp_path):
    write_set(tmp_path, kinds=[Kind.INVOICE], count=1, seed=5, form=Format.PDF, pages=2)
    [path] = (tmp_path / "images").glob("*.pdf")
    docmill.json("ingest", str(path), "-t", "invoice")
    found = docmill.json("show", path.name)
    assert found["document"]["status"] == "done" and found["document"]["page_count"] == 2
    result = docmill.sql("SELECT result FROM readings WHERE id = %s", found["document"]["reading_id"])[0]["result"]
    assert result["pages"] == 2 and result["fields"] and set(result["text"]) == {"1", "2"}


def test_an_encrypted_document_needs_its_password(docmill, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "locked.pdf").write_bytes(encrypted_pdf("open sesame"))
    end = docmill.json("ingest", str(folder), code=3)
    assert [f["code"] for f in end["failures"]] == ["encrypted_document"]
    (tmp_path / "docmill.toml").write_text(f'[pipeline.source_passwords]\n"{folder}" = ["open sesame"]\n')
    again = docmill.json("reprocess", end["batch_id"], variables={"DOCMILL_CONFIG": str(tmp_path / "docmill.toml")})
    assert again["counts"]["pages_done"] == 1
    assert "sesame" not in json.dumps(docmill.sql("SELECT row_to_json(b)::text AS row FROM batches b"))


def encrypted_pdf(password: str) -> bytes:
    """A one-page PDF under the standard security handler (40-bit RC4, revision 2; ISO 32000-1, 7.6.3)."""
    import hashlib

    padding = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")

    def rc4(key: bytes, data: bytes) -> bytes:
        state, j = list(range(256)), 0
        for i in range(256):
            j = (j + state[i] + key[i % len(key)]) % 256
            state[i], state[j] = state[j], state[i]
        out, i, j = bytearray(), 0, 0
        for byte in data:
            i = (i + 1) % 256
            j = (j + state[i]) % 256
            state[i], state[j] = state[j], state[i]
            out.append(byte ^ state[(state[i] + state[j]) % 256])
        return bytes(out)

    padded = (password.encode() + padding)[:32]
    owner = rc4(hashlib.md5(padded).digest()[:5], padded)
    permissions, identity = -44, b"0123456789abcdef"
    key = hashlib.md5(padded + owner + permissions.to_bytes(4, "little", signed=True) + identity).digest()[:5]
    user = rc4(key, padding)
    content = b"0 0 200 200 re f"
    sealed = rc4(hashlib.md5(key + (4).to_bytes(3, "little") + b"\0\0").digest()[:10], content)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] /Contents 4 0 R >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(sealed), sealed),
        b"<< /Filter /Standard /V 1 /R 2 /O <%s> /U <%s> /P %d >>"
        % (owner.hex().encode(), user.hex().encode(), permissions),
    ]
    body, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Size 6 /Root 1 0 R /Encrypt 5 0 R /ID [<%s> <%s>] >>\nstartxref\n%d\n%%%%EOF"
    return body + table + end % (identity.hex().encode(), identity.hex().encode(), len(body))
