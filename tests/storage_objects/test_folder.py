"""What only folders have: files that others write, links, rights."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from docmill.failures import AccessDenied, ConfigurationError, DocumentNotFound
from storage.objects.folder import FolderStore


async def keys(root: Path, prefix: str = "") -> list[str]:
    return [ref.key async for ref in FolderStore().list(str(root), prefix)]


async def refs(root: Path) -> dict:
    return {ref.key: ref async for ref in FolderStore().list(str(root))}


async def test_order_is_that_of_keys_not_of_folders(tmp_path):
    for key in ("a/b", "a-b", "a0", "a.pdf", "B"):
        (tmp_path / key).parent.mkdir(exist_ok=True)
        (tmp_path / key).write_bytes(b"x")

    assert await keys(tmp_path) == sorted(["a/b", "a-b", "a0", "a.pdf", "B"])


async def test_hidden_files_are_no_documents(tmp_path):
    await FolderStore().put(str(tmp_path), "seen.pdf", b"x", metadata={"a": "b"})
    (tmp_path / ".DS_Store").write_bytes(b"x")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_bytes(b"x")

    assert await keys(tmp_path) == ["seen.pdf"]


async def test_hidden_keys_cannot_be_put(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be a file"):
        await FolderStore().put(str(tmp_path), ".docmill/metadata/x", b"x")


async def test_a_file_can_be_the_source(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"aaa")
    (tmp_path / "a.pdf.bak").write_bytes(b"b")

    found = [ref async for ref in FolderStore().list(str(tmp_path / "a.pdf"))]

    assert [(ref.bucket, ref.key, ref.size) for ref in found] == [(str(tmp_path), "a.pdf", 3)]
    await FolderStore().fetch(found[0], tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"aaa"


async def test_the_etag_sees_a_change_with_the_old_time_and_size(tmp_path):
    file = tmp_path / "a.pdf"
    file.write_bytes(b"one")
    before = (await refs(tmp_path))["a.pdf"]
    times = file.stat()
    with file.open("r+b") as open_file:  # in place: same inode
        open_file.write(b"two")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    after = (await refs(tmp_path))["a.pdf"]

    assert after.size == before.size
    assert after.etag != before.etag
    with pytest.raises(DocumentNotFound, match="changed"):
        await FolderStore().fetch(before, tmp_path / "target")


async def test_the_etag_sees_every_one_of_quick_changes(tmp_path):
    file = tmp_path / "a.pdf"
    etags = []
    for n in range(20):
        with file.open("wb") as out:
            out.write(bytes([n]))
        etags.append((await FolderStore().head(str(tmp_path), "a.pdf")).etag)

    assert len(set(etags)) == 20


async def test_the_etag_stays_while_nothing_changes(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"one")

    assert (await refs(tmp_path))["a.pdf"].etag == (await refs(tmp_path))["a.pdf"].etag


async def test_metadata_do_not_outlive_a_file_of_somebody_else(tmp_path):
    await FolderStore().put(str(tmp_path), "a.pdf", b"ours", metadata={"from": "us"})
    (tmp_path / "a.pdf").write_bytes(b"theirs!")

    assert (await FolderStore().head(str(tmp_path), "a.pdf")).metadata == {}


async def test_links_inside_are_followed_and_do_not_go_round(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.pdf").write_bytes(b"aaa")
    (tmp_path / "link.pdf").symlink_to("real/a.pdf")
    (tmp_path / "again").symlink_to("real")
    (tmp_path / "real" / "round").symlink_to("..")

    found = await refs(tmp_path)

    assert sorted(found) == ["link.pdf", "real/a.pdf"]
    await FolderStore().fetch(found["link.pdf"], tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"aaa"


async def test_links_that_lead_out_are_listed_and_refused(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.pdf").write_bytes(b"secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "file.pdf").symlink_to(outside / "secret.pdf")
    (root / "folder").symlink_to(outside)
    (root / "broken.pdf").symlink_to("nowhere")

    found = await refs(root)

    assert sorted(found) == ["broken.pdf", "file.pdf", "folder"]
    for key in ("file.pdf", "folder"):
        with pytest.raises(AccessDenied, match="leads out"):
            await FolderStore().fetch(found[key], tmp_path / "target")
    with pytest.raises(DocumentNotFound):
        await FolderStore().fetch(found["broken.pdf"], tmp_path / "target")
    with pytest.raises(AccessDenied, match="leads out"):
        await FolderStore().head(str(root), "folder/secret.pdf")
    with pytest.raises(AccessDenied, match="leads out"):
        await FolderStore().put(str(root), "folder/new.pdf", b"x")
    await FolderStore().delete(str(root), "folder/secret.pdf")
    assert (outside / "secret.pdf").exists()
    assert not (tmp_path / "target").exists()


async def test_pipes_are_listed_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.pdf")

    found = await refs(tmp_path)

    with pytest.raises(DocumentNotFound, match="no file"):
        await FolderStore().fetch(found["pipe.pdf"], tmp_path / "target")


@pytest.fixture
def odd_name(tmp_path):
    (tmp_path / os.fsdecode(b"caf\xe9.pdf")).write_bytes(b"coffee")


@pytest.mark.usefixtures("odd_name")
async def test_names_that_are_no_utf8_come_through(tmp_path):

    found = await refs(tmp_path)

    assert list(found) == [r"caf\xe9.pdf"]
    await FolderStore().fetch(found[r"caf\xe9.pdf"], tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"coffee"


SCRIPT = """
import asyncio, concurrent.futures.thread, json, os, sys
from docmill.failures import DocmillError
from storage.objects.folder import FolderStore
if os.getuid() == 0:  # only now: the interpreter itself may lie where only root can go
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
async def main(root, target):
    found = {}
    try:
        async for ref in FolderStore().list(root):
            try:
                await FolderStore().fetch(ref, __import__("pathlib").Path(target))
                found[ref.key] = "read"
            except DocmillError as error:
                found[ref.key] = error.code
    except DocmillError as error:
        found = error.code
    print(json.dumps(found))
asyncio.run(main(*sys.argv[1:]))
"""


def as_ordinary_user(folder: Path, *arguments: object) -> str:
    """What the script prints when it runs without root's right to read everything."""
    command = [sys.executable, "-c", SCRIPT, *map(str, arguments)]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.strip()


@pytest.fixture
def open_folder(service_folder: Path) -> Path:
    folder = service_folder / "rights"
    folder.mkdir()
    folder.chmod(0o777)
    yield folder
    for each in folder.rglob("*"):
        each.chmod(0o700)
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_what_may_not_be_read_is_listed(open_folder):
    (open_folder / "good.pdf").write_bytes(b"x")
    (open_folder / "closed.pdf").write_bytes(b"x")
    (open_folder / "closed.pdf").chmod(0)
    (open_folder / "closed").mkdir()
    (open_folder / "closed" / "inside.pdf").write_bytes(b"x")
    (open_folder / "closed").chmod(0)
    (open_folder / "listed").mkdir()
    (open_folder / "listed" / "inside.pdf").write_bytes(b"x")
    (open_folder / "listed").chmod(0o444)

    found = as_ordinary_user(open_folder, open_folder, open_folder / ".target")

    assert found == (
        '{"closed": "access_denied", "closed.pdf": "access_denied", "good.pdf": "read", '
        '"listed/inside.pdf": "access_denied"}'
    )


def test_a_closed_source_is_refused(open_folder):
    (open_folder / "closed").mkdir()
    (open_folder / "closed").chmod(0)

    assert as_ordinary_user(open_folder, open_folder / "closed", open_folder / ".target") == '"access_denied"'


@pytest.mark.parametrize("key", ["", "a//b", "/a", "a/", "n" * 256, "a\0b", "\ud800"])
async def test_keys_that_cannot_be_files(tmp_path, key):
    with pytest.raises(ConfigurationError):
        await FolderStore().put(str(tmp_path), key, b"x")
    with pytest.raises(DocumentNotFound):
        await FolderStore().head(str(tmp_path), key)
    await FolderStore().delete(str(tmp_path), key)


async def test_a_file_cannot_take_a_folders_place(tmp_path):
    await FolderStore().put(str(tmp_path), "a/b", b"x")

    with pytest.raises(ConfigurationError, match="a folder has its name"):
        await FolderStore().put(str(tmp_path), "a", b"x")
    with pytest.raises(ConfigurationError, match="a folder has its name"):
        await FolderStore().put(str(tmp_path), "a/b/c", b"x")
    assert [each.name for each in (tmp_path / ".docmill" / "incoming").iterdir()] == []


async def test_relative_buckets_are_refused():
    with pytest.raises(ConfigurationError, match="absolute"):
        await FolderStore().head("relative", "key")


async def test_files_of_others_can_be_read_by_those_who_could_before(tmp_path):
    await FolderStore().put(str(tmp_path), "a.pdf", b"x")

    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "a.pdf").stat().st_mode) == 0o666 & ~umask
