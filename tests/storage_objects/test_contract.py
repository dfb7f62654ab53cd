"""What every object store does, over the real S3 server and over folders."""

import asyncio
import dataclasses
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from docmill.failures import ConfigurationError, DocumentNotFound, ObjectStoreUnavailable
from docmill.ports import ObjectRef

pytestmark = pytest.mark.services

KEYS = [
    "plain.pdf",
    "2024/11/scan 001.pdf",
    "plus+minus.pdf",
    "100%.pdf",
    "%41%2F.pdf",
    "hash#tag.pdf",
    "question?mark&amp=1.pdf",
    "Ärger/ñandú/发票-01.pdf",
    "emoji😀.png",
    "tilde~'quote'(1)!.tif",
    "semi;colon,comma=equal@at:$.jpg",
    "a" * 250 + ".pdf",
    "/".join(["b" * 190] * 5),
]


async def listed(place, prefix: str = "") -> list[ObjectRef]:
    return [ref async for ref in place.store.list(place.bucket, prefix)]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: ascii(key[:20]))
async def test_what_is_put_comes_back(place, tmp_path, key):
    put = await place.store.put(place.bucket, key, key.encode(), content_type="application/pdf")

    head = await place.store.head(place.bucket, key)
    (ref,) = await listed(place)
    await place.store.fetch(ref, tmp_path / "target")

    assert (tmp_path / "target").read_bytes() == key.encode()
    assert put.key == head.key == ref.key == key
    assert put.bucket == head.bucket == ref.bucket == place.bucket
    assert put.size == head.size == ref.size == len(key.encode())
    assert put.etag == head.etag == ref.etag
    assert '"' not in ref.etag
    assert head.content_type == "application/pdf"


async def test_a_file_can_be_put(place, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(bytes(range(256)) * 50_000)  # 12.8 MB: in several parts

    ref = await place.store.put(place.bucket, "large.tif", source)
    await place.store.fetch(await place.store.head(place.bucket, "large.tif"), tmp_path / "target")

    assert ref.size == 12_800_000
    assert (tmp_path / "target").read_bytes() == source.read_bytes()


async def test_a_file_that_is_not_there_cannot_be_put(place, tmp_path):
    with pytest.raises(DocumentNotFound, match="nothing-here"):
        await place.store.put(place.bucket, "key", tmp_path / "nothing-here")


async def test_no_bytes_are_an_object_too(place, tmp_path):
    await place.store.put(place.bucket, "empty.pdf", b"")

    (ref,) = await listed(place)
    await place.store.fetch(ref, tmp_path / "target")

    assert ref.size == 0
    assert (tmp_path / "target").read_bytes() == b""


async def test_metadata_come_back_with_lower_case_names(place):
    given = {"Batch": "2024-11", "from": "Jürgen Müller, 北京", "blank": "", "spaced": " two  blanks ", "line": "a\nb"}

    await place.store.put(place.bucket, "key", b"x", metadata=given)
    head = await place.store.head(place.bucket, "key")

    assert head.metadata == {"batch": "2024-11", **{name: given[name] for name in given if name != "Batch"}}


async def test_a_new_version_has_its_own_metadata(place):
    await place.store.put(place.bucket, "key", b"one", metadata={"a": "1"}, content_type="image/png")
    await place.store.put(place.bucket, "key", b"two")

    head = await place.store.head(place.bucket, "key")

    assert head.metadata == {}
    assert head.content_type != "image/png"


async def test_impossible_metadata_names_are_refused(place):
    with pytest.raises(ConfigurationError, match="metadata name"):
        await place.store.put(place.bucket, "key", b"x", metadata={"a name": "x"})


async def test_listing_is_by_prefix_of_the_key(place):
    for key in ("a.pdf", "in/1.pdf", "in/sub/2.pdf", "invoice.pdf", "out/3.pdf"):
        await place.store.put(place.bucket, key, b"x")

    assert [ref.key for ref in await listed(place)] == ["a.pdf", "in/1.pdf", "in/sub/2.pdf", "invoice.pdf", "out/3.pdf"]
    assert [ref.key for ref in await listed(place, "in")] == ["in/1.pdf", "in/sub/2.pdf", "invoice.pdf"]
    assert [ref.key for ref in await listed(place, "in/")] == ["in/1.pdf", "in/sub/2.pdf"]
    assert [ref.key for ref in await listed(place, "in/s")] == ["in/sub/2.pdf"]
    assert [ref.key for ref in await listed(place, "in/1.pdf")] == ["in/1.pdf"]
    assert [ref.key for ref in await listed(place, "none")] == []


async def test_listing_knows_when(place):
    before = datetime.now(UTC) - timedelta(seconds=2)
    await place.store.put(place.bucket, "key", b"x")

    (ref,) = await listed(place)

    assert before < ref.last_modified < datetime.now(UTC) + timedelta(seconds=2)


async def test_listing_goes_on_past_a_thousand(place):
    keys = [f"{folder}/{n:04}" for folder in ("a", "b", "c") for n in range(450)]
    limit = asyncio.Semaphore(8)

    async def put(key: str) -> None:
        async with limit:
            await place.store.put(place.bucket, key, b"x")

    await asyncio.gather(*map(put, keys))

    assert [ref.key for ref in await listed(place)] == keys
    assert [ref.key for ref in await listed(place, "b/")] == keys[450:900]


async def test_listing_can_be_left_in_the_middle(place):
    for key in ("a", "b", "c"):
        await place.store.put(place.bucket, key, b"x")

    async for ref in place.store.list(place.bucket):
        assert ref.key == "a"
        break


async def test_a_missing_bucket_is_named(place):
    with pytest.raises(DocumentNotFound, match=place.bucket):
        await listed(place)


async def test_what_is_missing_is_not_found(place, tmp_path):
    ref = await place.store.put(place.bucket, "there", b"x")
    gone = dataclasses.replace(ref, key="gone/deep")

    with pytest.raises(DocumentNotFound):
        await place.store.head(place.bucket, "gone/deep")
    with pytest.raises(DocumentNotFound):
        await place.store.fetch(gone, tmp_path / "target")
    assert not (tmp_path / "target").exists()


async def test_the_etag_changes_with_the_bytes(place):
    etags = [(await place.store.put(place.bucket, "key", data)).etag for data in (b"one", b"two", b"six")]

    assert len(set(etags)) == 3


async def test_another_version_is_not_fetched(place, tmp_path):
    old = await place.store.put(place.bucket, "key", b"one")
    await place.store.put(place.bucket, "key", b"two")
    (tmp_path / "target").write_bytes(b"as it was")

    with pytest.raises(DocumentNotFound, match="changed"):
        await place.store.fetch(old, tmp_path / "target")

    assert (tmp_path / "target").read_bytes() == b"as it was"
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["target"]


async def test_a_short_answer_is_not_kept(place, tmp_path):
    ref = await place.store.put(place.bucket, "key", b"12345")

    with pytest.raises(ObjectStoreUnavailable, match="5 of 6 bytes"):
        await place.store.fetch(dataclasses.replace(ref, size=6), tmp_path / "target")

    assert [each for each in tmp_path.iterdir() if each.is_file()] == []


async def test_a_target_that_cannot_be_written_is_named(place, tmp_path):
    ref = await place.store.put(place.bucket, "key", b"x")

    with pytest.raises(ConfigurationError, match="no-folder"):
        await place.store.fetch(ref, tmp_path / "no-folder" / "target")


async def test_delete_is_for_what_is_there_and_what_is_not(place):
    await place.store.put(place.bucket, "a/b", b"x", metadata={"a": "1"})
    await place.store.put(place.bucket, "c", b"x")

    await place.store.delete(place.bucket, "a/b")
    await place.store.delete(place.bucket, "a/b")
    await place.store.delete(place.bucket, "never/was")

    assert [ref.key for ref in await listed(place)] == ["c"]
    await place.store.put(place.bucket, "a", b"now a file")
    assert (await place.store.head(place.bucket, "a")).metadata == {}


async def test_a_signed_link_needs_no_credentials(place):
    key = "a folder/ü + %.pdf"
    await place.store.put(place.bucket, key, b"content")

    link = await place.store.presigned_get(place.bucket, key, expires_seconds=60)

    with await asyncio.to_thread(urllib.request.urlopen, link) as answer:
        assert answer.read() == b"content"


async def test_many_at_once(place, tmp_path):
    async def round_trip(n: int) -> bool:
        data = bytes([n % 256]) * (1000 + n)
        ref = await place.store.put(place.bucket, f"folder{n % 7}/{n}", data)
        target = tmp_path / f"target{n}"
        await place.store.fetch(ref, target)
        return target.read_bytes() == data

    assert all(await asyncio.gather(*(round_trip(n) for n in range(60))))
    assert len(await listed(place)) == 60


async def test_writers_of_one_key_leave_one_whole_version(place, tmp_path):
    versions = [bytes([n]) * 300_000 for n in range(8)]
    await asyncio.gather(*(place.store.put(place.bucket, "key", data) for data in versions))

    await place.store.fetch(await place.store.head(place.bucket, "key"), tmp_path / "target")

    assert (tmp_path / "target").read_bytes() in versions


async def test_check_passes(place):
    await place.store.check()


@pytest.mark.parametrize("key", ["a/../b", "../a", ".", "a/./b"])
async def test_keys_that_climb_are_refused(place, key):
    with pytest.raises(ConfigurationError):
        await place.store.put(place.bucket, key, b"x")


def test_paths_of_targets_may_be_long(tmp_path: Path):
    """The partial file has a name of its own: a target's name may be as long as the file system takes."""
    from storage.objects.local_files import write_whole

    target = tmp_path / ("n" * 255)
    write_whole([b"ab", b"c"], target, 3, "key")

    assert target.read_bytes() == b"abc"
