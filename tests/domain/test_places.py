"""Paths as people write them never end in an error of their own."""

from pathlib import Path

import pytest

from docmill.model_failures import ModelNotFound
from docmill.models.naming import load_profile
from docmill.places import whole_path
from docmill.settings import Settings
from flows.launches import profile_key


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    return tmp_path / "a"


def test_links_and_homes_are_followed(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert whole_path("~/link/../link/x") == tmp_path / "real" / "x"
    assert whole_path("here") == Path.cwd() / "here"


@pytest.mark.parametrize("written", ["~nobody-of-that-name/model", "\x00"])
def test_what_leads_nowhere_stays(written):
    assert written.strip("/") in str(whole_path(written))


def test_a_model_behind_a_loop_of_links_is_not_there(loop):
    key = profile_key(str(loop), Settings())
    with pytest.raises(ModelNotFound):
        load_profile(key)


def test_a_model_of_an_unknown_home_is_not_there():
    with pytest.raises(ModelNotFound):
        load_profile("~nobody-of-that-name/model")
