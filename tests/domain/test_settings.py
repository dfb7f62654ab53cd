"""Settings: the file, the environment, secrets in files, and messages that name place and remedy."""

from pathlib import Path

import pytest

from docmill.failures import ConfigurationError
from docmill.settings import load_settings


@pytest.fixture(autouse=True)
def _bare(monkeypatch, tmp_path):
    import os

    for name in [n for n in os.environ if n.startswith("DOCMILL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def test_defaults_need_no_file():
    settings = load_settings()
    assert settings.database.url is None and settings.objects.endpoint is None and settings.prefect.api_url is None


def test_own_services_are_four_lines(tmp_path):
    (tmp_path / "docmill.toml").write_text(
        'database.url = "postgresql://me:hunter2@db/forms"\n'
        'objects.endpoint = "https://minio:9000"\n'
        'objects.region = "eu-1"\n'
        'prefect.api_url = "http://prefect:4200/api"\n'
    )
    settings = load_settings()
    assert settings.database.url.get_secret_value() == "postgresql://me:hunter2@db/forms"
    assert settings.objects.endpoint == "https://minio:9000"
    assert settings.prefect.api_url == "http://prefect:4200/api"
    assert "hunter2" not in repr(settings)


def test_file_is_found_from_a_folder_below(tmp_path, monkeypatch):
    (tmp_path / "docmill.toml").write_text("pipeline.workers = 7\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    assert load_settings().pipeline.workers == 7


def test_the_data_folder_is_the_same_from_everywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for given, meant in {"data": tmp_path / "data", "~/data": tmp_path / "home" / "data", "/d": Path("/d")}.items():
        monkeypatch.setenv("DOCMILL_DATA_DIR", given)
        assert load_settings().data_dir == meant


def test_environment_wins_over_the_file(tmp_path, monkeypatch):
    (tmp_path / "docmill.toml").write_text("[pipeline]\nworkers = 7\nshard_pages = 3\n")
    monkeypatch.setenv("DOCMILL_PIPELINE_WORKERS", "9")
    settings = load_settings()
    assert (settings.pipeline.workers, settings.pipeline.shard_pages) == (9, 3)


def test_secrets_from_files(tmp_path, monkeypatch):
    (tmp_path / "url").write_text("postgresql://u:p@h/d\n")
    (tmp_path / "passwords").write_text("one\ntwo\n")
    monkeypatch.setenv("DOCMILL_DATABASE_URL_FILE", str(tmp_path / "url"))
    monkeypatch.setenv("DOCMILL_PIPELINE_PASSWORDS_FILE", str(tmp_path / "passwords"))
    settings = load_settings()
    assert settings.database.url.get_secret_value() == "postgresql://u:p@h/d"
    assert settings.pipeline.passwords_for("s3://any/where") == ("one", "two")


def test_passwords_of_a_source_come_first(tmp_path):
    (tmp_path / "docmill.toml").write_text(
        '[pipeline]\npasswords = ["all"]\n[pipeline.source_passwords]\n"s3://forms/hr/" = ["hr"]\n'
    )
    settings = load_settings()
    assert settings.pipeline.passwords_for("s3://forms/hr/a.pdf") == ("hr", "all")
    assert settings.pipeline.passwords_for("s3://forms/it/a.pdf") == ("all",)


@pytest.mark.parametrize(
    ("toml", "variables", "told"),
    [
        ("[database]\nurll = 'x'\n", {}, ["database.urll", "docmill.toml", "url, url_file, pool_size"]),
        ("[databas]\nurl = 'x'\n", {}, ["databas", "docmill.toml", "database, objects, prefect"]),
        ("[database]\nurl = 'mysql://x'\n", {}, ["database", "postgresql://"]),
        ("[pipeline]\nworkers = 0\n", {}, ["pipeline.workers", "docmill.toml", "greater than or equal to 1"]),
        ("", {"DOCMILL_PIPELINE_WORKERS": "many"}, ["pipeline.workers", "DOCMILL_PIPELINE_WORKERS", "integer"]),
        ("", {"DOCMILL_OBJECTS_BUCKETS": "x"}, ["objects.buckets", "DOCMILL_OBJECTS_BUCKETS", "bucket"]),
        ("", {"DOCMILL_DATABSE_URL": "x"}, ["DOCMILL_DATABSE_URL", "no such setting", "database"]),
        ("", {"DOCMILL_CONFIG": "/nowhere.toml"}, ["DOCMILL_CONFIG", "/nowhere.toml"]),
        ("", {"DOCMILL_OBJECTS_ACCESS_KEY": "x"}, ["access_key and secret_key go together"]),
        ("", {"DOCMILL_DATABASE_URL_FILE": "/nowhere"}, ["url_file", "/nowhere", "FileNotFoundError"]),
        ("= nonsense", {}, ["docmill.toml", "not TOML"]),
    ],
)
def test_wrong_settings_are_named(tmp_path, monkeypatch, toml, variables, told):
    (tmp_path / "docmill.toml").write_text(toml)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    for part in told:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ('serving.base_urls = ["http://a:x"]', "http://host:port"),
        ('serving.base_urls = "ftp://a"', "http://host:port"),
        ('serving.base_urls = ["http://me:hunter2@gpu1:8000"]', "api_key_file"),
        ('serving.models = {em = ""}', "no folder is given for em"),
        ('serving.quantization = ""', "serving.quantization"),
        ('serving.host = ""', "serving.host"),
    ],
)
def test_wrong_settings_of_model_servers_are_named(tmp_path, toml, told):
    (tmp_path / "docmill.toml").write_text(toml)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert told in caught.value.message and "hunter2" not in str(caught.value)


def test_one_address_needs_no_list(tmp_path):
    (tmp_path / "docmill.toml").write_text('serving.base_urls = "http://gpu1:8000/v1"')
    assert load_settings().serving.base_urls == ("http://gpu1:8000/v1",)


def test_wrong_secrets_are_not_quoted(tmp_path):
    (tmp_path / "docmill.toml").write_text('[database]\nurl = "mysql://me:hunter2@db/x"\n')
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert "hunter2" not in str(caught.value)
