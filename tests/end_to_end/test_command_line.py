"""What people type: tables, JSON, Markdown, pictures, exit codes, from any folder."""

import json
from pathlib import Path

import pytest
from PIL import Image

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def demo(docmill, tmp_path_factory):
    """The demo, once: its output and its report."""
    folder = tmp_path_factory.mktemp("demo")
    done = docmill.run("demo", cwd=folder)
    return done.stdout, (folder / "demo-report.html").read_text()


def test_the_demo_shows_rows_failures_and_where_to_look(docmill, demo):
    out, report = demo
    assert "receipt-01.jpg" in out and "application-02.tif" in out
    assert "unreadable_document" in out and "what to do" in out
    assert "http://127.0.0.1:" in out and "demo-report.html" in out
    assert report.count("data:image/jpeg") >= 14 and "invoice-05.pdf" in report


def test_the_demo_again_finds_nothing_new(docmill, demo, tmp_path):
    assert "nothing is new" in docmill.run("demo", cwd=tmp_path).stdout


def test_show_a_document_in_every_form(docmill, demo, tmp_path):
    assert "72.06" in docmill.run("show", "receipt-01.jpg").stdout
    found = docmill.json("show", "receipt-01.jpg")
    assert found["document"]["document_type"] == "receipt" and len(found["fields"]) > 10
    again = docmill.json("show", found["document"]["document_id"][:8])
    assert again["document"]["key"] == found["document"]["key"]
    markdown = docmill.run("show", "receipt-01.jpg", "--markdown").stdout
    assert "| page_no | name | value | confidence |" in markdown and "## Page 1" in markdown
    picture = tmp_path / "boxes.png"
    docmill.run("show", "receipt-01.jpg", "--overlay", str(picture))
    drawn = Image.open(picture).convert("RGB")
    plain = Image.open(Path(__file__).parents[2] / "samples/receipts/receipt-01.jpg").convert("RGB")
    colours = {pixel for _, pixel in drawn.getcolors(drawn.width * drawn.height) if max(pixel) - min(pixel) > 60}
    assert drawn.size[1] / drawn.size[0] == pytest.approx(plain.size[1] / plain.size[0], rel=0.02)
    assert colours, "boxes are drawn in colour"


def test_batches_and_their_documents(docmill, demo):
    batches = docmill.json("batches", "--limit", "3")
    assert len(batches) == 3
    shown = docmill.json("show", batches[0]["batch_id"])
    assert shown["batch"]["batch_id"] == batches[0]["batch_id"]
    assert docmill.run("batches").stdout.count("\n") >= 3


def test_report_of_a_batch(docmill, demo, tmp_path):
    [batch] = [b for b in docmill.json("batches") if b["source"].endswith("samples/invoices/") and b["pages_total"]]
    told = docmill.json("report", batch["batch_id"], "--out", str(tmp_path / "r.html"))
    assert told["documents"] == 5 and told["pages"] == 6
    assert "<svg" in (tmp_path / "r.html").read_text()


def test_types(docmill):
    assert {"receipt", "invoice", "application_form", "generic"} <= {t["name"] for t in docmill.json("types")}
    assert "total" in docmill.run("types", "receipt").stdout


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["show", "no-such-thing"], 4, "docmill batches"),
        (["ingest", "/no/such/folder"], 4, "/no/such/folder"),
        (["ingest", "s3://no-such-bucket-here/x/"], 4, "no-such-bucket-here"),
        (["ingest", "ftp://x/y"], 2, "s3://"),
        (["ingest", ".", "--type", "nonsense"], 2, "receipt"),
        (["ingest", ".", "--engine", "telepathy"], 2, "ocr"),
        (["ingest", ".", "--workers", "0"], 2, "--workers"),
        (["types", "nonsense"], 2, "receipt"),
        (["reprocess", "ffffffff"], 2, "docmill batches"),
        (["frobnicate"], 2, "frobnicate"),
    ],
)
def test_errors_name_the_remedy_and_end_with_the_documented_code(docmill, arguments, code, told):
    done = docmill.run(*arguments, code=code)
    assert told in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


def test_errors_as_json(docmill):
    done = docmill.run("show", "no-such-thing", "--json", code=4)
    assert json.loads(done.stderr)["error"] == "document_not_found"


def test_without_a_stack_the_remedy_is_up(docmill, tmp_path):
    done = docmill.run("batches", code=5, variables={"DOCMILL_DATA_DIR": str(tmp_path / "empty")})
    assert "docmill up" in done.stderr


def test_settings_are_shown_without_secrets(docmill, tmp_path):
    (tmp_path / "docmill.toml").write_text(
        'database.url = "postgresql://me:hunter2@db/x"\nobjects.endpoint = "https://me:hunter2@minio"\n'
    )
    done = docmill.run("config", "show", variables={"DOCMILL_CONFIG": str(tmp_path / "docmill.toml")})
    assert "hunter2" not in done.stdout and "********" in done.stdout and "database.url" in done.stdout


def test_evaluation_of_the_samples(docmill, demo):
    samples = Path(__file__).parents[2] / "samples"
    report = docmill.json("evaluate", str(samples), "--type", "receipt", "--source", "s3://forms/samples")
    assert report["documents"] == 4 and report["documents_failed"] == 0
    assert report["exact"] > 0.8 and report["character_error_rate"] < 0.02
