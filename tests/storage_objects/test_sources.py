"""What people name as a source."""

import pytest

from docmill.failures import ConfigurationError, DocumentNotFound
from storage.objects.folder import FolderStore
from storage.objects.sources import Source, SourceKind, parse_source, store_for


@pytest.mark.parametrize(
    ("text", "bucket", "prefix"),
    [
        ("s3://forms", "forms", ""),
        ("s3://forms/", "forms", ""),
        ("s3://forms/2024/in", "forms", "2024/in"),
        ("S3://forms/a b+%/ü#x?y", "forms", "a b+%/ü#x?y"),
        ("  s3://my-forms.eu/x ", "my-forms.eu", "x"),
    ],
)
def test_s3(text, bucket, prefix):
    assert parse_source(text) == Source(SourceKind.S3, bucket, prefix)


def test_local(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a b.pdf").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = Source(SourceKind.FOLDER, str(tmp_path / "in"))
    file = Source(SourceKind.FILE, str(tmp_path / "in" / "a b.pdf"))

    for text in ("in", "in/", "./in/../in", "~/in", str(tmp_path / "in"), (tmp_path / "in").as_uri()):
        assert parse_source(text) == folder
    for text in ("in/a b.pdf", (tmp_path / "in" / "a b.pdf").as_uri()):
        assert parse_source(text) == file


def test_a_source_can_be_written_down(tmp_path):
    for text in ("s3://forms/2024/", str(tmp_path)):
        assert str(parse_source(text)) == text
        assert parse_source(str(parse_source(text))) == parse_source(text)


@pytest.mark.parametrize(
    "text", ["", "  ", "s3://", "s3:///key", "s3:/forms/key", "s3://a", "s3://-x-/k", "s3://a b/k"]
)
def test_what_names_nothing(text):
    with pytest.raises(ConfigurationError) as caught:
        parse_source(text)
    assert "s3://" in caught.value.remedy


@pytest.mark.parametrize("text", ["gs://forms/x", "https://host/forms", "az://x/y"])
def test_other_schemes_are_named(text):
    with pytest.raises(ConfigurationError, match=text.split(":")[0]):
        parse_source(text)


def test_missing_paths(tmp_path):
    with pytest.raises(DocumentNotFound, match="nothing") as caught:
        parse_source(str(tmp_path / "nothing"))
    assert "worker" in caught.value.remedy


def test_the_store_of_a_bucket(tmp_path):
    s3 = FolderStore()

    assert store_for("forms", lambda: s3) is s3
    assert isinstance(store_for(str(tmp_path), lambda: pytest.fail("not needed")), FolderStore)
