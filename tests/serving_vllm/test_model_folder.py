import hashlib
import json
import os
from pathlib import Path

import pytest
from model_files import SHARDS, safetensors, write_model

from docmill.model_failures import ModelIncomplete, ModelNotFound, NotAVisionModel
from serving.vllm.findings import Finding
from serving.vllm.model_folder import check_model_folder, model_files

FIRST, SECOND = SHARDS


def only(findings: list[Finding]) -> Finding:
    (finding,) = findings
    return finding


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "qwen")


def test_a_complete_folder(model: Path) -> None:
    assert check_model_folder(model) == []
    held = model_files(model)
    assert held.shards == 2
    assert held.total_bytes == sum((model / name).stat().st_size for name in SHARDS)


@pytest.mark.parametrize("name", ["nothing", "nothing/at/all"])
def test_a_folder_that_is_not_there(tmp_path: Path, name: str) -> None:
    finding = only(check_model_folder(tmp_path / name))
    assert finding.error is ModelNotFound
    assert "is not there" in finding.message
    assert model_files(tmp_path / name).shards == 0


def test_a_file_instead_of_a_folder(model: Path) -> None:
    finding = only(check_model_folder(model / "config.json"))
    assert finding.error is ModelNotFound
    assert "is a file" in finding.message


def test_a_folder_of_a_hubs_cache_names_its_snapshot(model: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "models--Qwen--Qwen2-VL" / "snapshots" / "abc"
    snapshot.parent.mkdir(parents=True)
    model.rename(snapshot)
    finding = only(check_model_folder(tmp_path / "models--Qwen--Qwen2-VL"))
    assert finding.error is ModelNotFound
    assert str(snapshot) in finding.remedy


def test_an_adapter_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    assert "adapter" in only(check_model_folder(tmp_path)).remedy


@pytest.mark.parametrize("text", ["", "{", "[]", "version https://git-lfs.github.com/spec/v1\n"])
def test_a_damaged_config(model: Path, text: str) -> None:
    (model / "config.json").write_text(text)
    findings = check_model_folder(model)
    assert findings[0].file == "config.json"
    assert findings[0].error is ModelIncomplete


def test_a_config_without_model_type(model: Path) -> None:
    (model / "config.json").write_text(json.dumps({"vision_config": {"depth": 2}}))
    assert "model_type" in only(check_model_folder(model)).message


def test_a_model_without_vision(model: Path) -> None:
    (model / "config.json").write_text(json.dumps({"model_type": "qwen2", "vision_config": {}}))
    finding = only(check_model_folder(model))
    assert finding.error is NotAVisionModel
    assert "qwen2 has no vision part" in finding.message


def test_vision_that_is_nested(model: Path) -> None:
    config = {"model_type": "qwen3_omni", "thinker_config": {"vision_config": {"depth": 2}}}
    (model / "config.json").write_text(json.dumps(config))
    assert check_model_folder(model) == []


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ("tokenizer.json", "no tokenizer"),
        ("preprocessor_config.json", "no preprocessor_config.json"),
        ("chat_template.jinja", "no chat template"),
    ],
)
def test_small_files_that_are_missing(model: Path, lost: str, told: str) -> None:
    (model / lost).unlink()
    finding = only(check_model_folder(model))
    assert finding.error is ModelIncomplete
    assert told in finding.message


def test_an_empty_tokenizer(model: Path) -> None:
    (model / "tokenizer.json").write_text("")
    assert "tokenizer.json is empty" in only(check_model_folder(model)).message


def test_other_tokenizers_templates_and_processors_count(model: Path) -> None:
    for name in ("tokenizer.json", "preprocessor_config.json", "chat_template.jinja"):
        (model / name).unlink()
    (model / "vocab.json").write_text("{}")
    (model / "merges.txt").write_text("a b")
    (model / "processor_config.json").write_text("{}")
    (model / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    assert check_model_folder(model) == []


def test_a_template_given_on_the_command_line_needs_no_file(model: Path) -> None:
    (model / "chat_template.jinja").unlink()
    assert check_model_folder(model, chat_template=False) == []


def test_missing_shards_are_counted_and_named(model: Path) -> None:
    (model / SECOND).unlink()
    (model / f"{SECOND}.incomplete").write_bytes(b"x")
    finding = only(check_model_folder(model))
    assert finding.error is ModelIncomplete
    assert f"1 of 2 shards missing: {SECOND}" in finding.message
    assert "stopped at" in finding.message


def test_a_link_that_leads_nowhere_is_a_missing_shard(model: Path) -> None:
    (model / SECOND).unlink()
    (model / SECOND).symlink_to(model / "blobs" / "gone")
    assert "1 of 2 shards missing" in only(check_model_folder(model)).message


def test_many_missing_shards_are_not_all_named(model: Path) -> None:
    index = {"weight_map": {f"t{n}": f"model-{n:05d}-of-00009.safetensors" for n in range(1, 10)}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "9 of 9 shards missing" in only(check_model_folder(model)).message
    assert "and 6 more" in only(check_model_folder(model)).message


@pytest.mark.parametrize("left", [1, 100, 4000])
def test_a_truncated_shard_is_found_from_its_header(model: Path, left: int) -> None:
    whole = (model / FIRST).read_bytes()
    (model / FIRST).write_bytes(whole[:-left])
    finding = only(check_model_folder(model))
    assert finding.error is ModelIncomplete
    assert f"{FIRST} is cut off: {len(whole) - left:,} of {len(whole):,} bytes" in finding.message


@pytest.mark.parametrize(("kept", "told"), [(0, "off: 0 bytes"), (5, "off: 5 bytes"), (20, "within its header")])
def test_a_shard_that_was_hardly_begun(model: Path, kept: int, told: str) -> None:
    (model / FIRST).write_bytes((model / FIRST).read_bytes()[:kept])
    assert told in only(check_model_folder(model)).message


def test_a_large_truncated_shard_is_found_without_reading_it(model: Path) -> None:
    header = safetensors({"big": 400 * 2**30}, data=b"")
    with (model / FIRST).open("wb") as file:
        file.write(header)
        file.truncate(len(header) + 399 * 2**30)  # a hole: it holds no blocks
    index = {"weight_map": {"big": FIRST}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "is cut off" in only(check_model_folder(model)).message
    os.truncate(model / FIRST, len(header) + 400 * 2**30)
    assert check_model_folder(model) == []


def test_a_shard_that_is_too_long(model: Path) -> None:
    with (model / FIRST).open("ab") as file:
        file.write(b"x")
    assert "longer than its header says" in only(check_model_folder(model)).message


def test_a_pointer_instead_of_weights(model: Path) -> None:
    (model / FIRST).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    finding = only(check_model_folder(model))
    assert "pointer of Git LFS" in finding.message
    assert finding.remedy == "git lfs pull"


@pytest.mark.parametrize(
    "content",
    [
        b"<html>404</html>" * 10,
        (4).to_bytes(8, "little") + b"abcd",
        (2).to_bytes(8, "little") + b"[]",
        (13).to_bytes(8, "little") + b'{"tensor": 1}',
        (24).to_bytes(8, "little") + b'{"t":{"data_offsets":0}}',
    ],
)
def test_what_is_no_shard_at_all(model: Path, content: bytes) -> None:
    (model / FIRST).write_bytes(content)
    assert only(check_model_folder(model)).error is ModelIncomplete


def test_tensors_that_are_not_where_the_index_says(model: Path) -> None:
    index = json.loads((model / "model.safetensors.index.json").read_text())
    index["weight_map"] |= {"lost.a": FIRST, "lost.b": FIRST}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "lacks the tensor lost.a and 1 more" in only(check_model_folder(model)).message


@pytest.mark.parametrize("text", ["{", "{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}', '{"weight_map": {}}'])
def test_a_damaged_index(model: Path, text: str) -> None:
    (model / "model.safetensors.index.json").write_text(text)
    assert only(check_model_folder(model)).error is ModelIncomplete


def test_one_file_needs_no_index(model: Path) -> None:
    for name in (*SHARDS, "model.safetensors.index.json"):
        (model / name).unlink()
    (model / "model.safetensors").write_bytes(safetensors({"a": 8}))
    assert check_model_folder(model) == []


def test_numbered_shards_without_an_index_promise_the_others(model: Path) -> None:
    (model / "model.safetensors.index.json").unlink()
    assert check_model_folder(model) == []
    (model / FIRST).unlink()
    assert f"1 of 2 shards missing: {FIRST}" in only(check_model_folder(model)).message


def test_no_weights(model: Path) -> None:
    for name in (*SHARDS, "model.safetensors.index.json"):
        (model / name).unlink()
    (model / ".cache" / "huggingface" / "download").mkdir(parents=True)
    (model / ".cache" / "huggingface" / "download" / "x.incomplete").touch()
    finding = only(check_model_folder(model))
    assert "no weights; the download stopped at x.incomplete" in finding.message
    assert check_model_folder(model, weights=False) == []


def test_weights_of_another_kind_are_only_warned_of(model: Path) -> None:
    for name in (*SHARDS, "model.safetensors.index.json"):
        (model / name).unlink()
    (model / "pytorch_model.bin").write_bytes(b"x")
    assert only(check_model_folder(model)).error is None


def test_everything_that_is_wrong_is_told(model: Path) -> None:
    for name in ("tokenizer.json", "chat_template.jinja", FIRST):
        (model / name).unlink()
    assert len(check_model_folder(model)) == 3


def test_sums_are_compared_only_when_asked(model: Path) -> None:
    sums = {name: hashlib.sha256((model / name).read_bytes()).hexdigest() for name in SHARDS}
    (model / "SHA256SUMS").write_text("".join(f"{held}  {name}\n" for name, held in sums.items()))
    read: list[str] = []
    assert check_model_folder(model, verify=True, say=read.append) == []
    assert sorted(read) == [f"reading {name}" for name in SHARDS]
    damaged = bytearray((model / FIRST).read_bytes())
    damaged[-1] ^= 1
    (model / FIRST).write_bytes(damaged)
    assert check_model_folder(model) == []
    finding = only(check_model_folder(model, verify=True))
    assert finding.error is ModelIncomplete
    assert f"{FIRST} is not what SHA256SUMS says" in finding.message


def test_a_manifest_that_names_what_is_missing_or_makes_no_sense(model: Path) -> None:
    (model / "SHA256SUMS").write_text(f"# made by hand\n\n{'0' * 64} *gone.safetensors\n")
    assert "gone.safetensors is missing" in only(check_model_folder(model, verify=True)).message
    (model / "SHA256SUMS").write_text("no sums\n")
    assert "not as sha256sum writes it" in only(check_model_folder(model, verify=True)).message


def test_without_a_manifest_nothing_was_verified(model: Path) -> None:
    finding = only(check_model_folder(model, verify=True))
    assert finding.error is None
    assert "no SHA256SUMS" in finding.message
