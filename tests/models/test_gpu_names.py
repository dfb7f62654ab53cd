"""How GPUs are written."""

import pytest

from docmill.failures import ConfigurationError
from docmill.models.gpus import GIB, gpu_names, parse_gpus


@pytest.mark.parametrize(
    ("text", "count", "name"),
    [
        ("2xH200", 2, "H200"),
        ("H200", 1, "H200"),
        ("h200", 1, "H200"),
        ("4xA100-80GB", 4, "A100-80GB"),
        ("8xH100-80GB", 8, "H100"),
        ("8 x h100 80 GB", 8, "H100"),
        ("2×L40S", 2, "L40S"),
        ("2*B200", 2, "B200"),
        ("RTX 4090", 1, "RTX4090"),
        ("NVIDIA GeForce RTX 4090", 1, "RTX4090"),
        ("AMD Instinct MI300X", 1, "MI300X"),
        ("1x24GB", 1, "24GB"),
        ("3x48 GiB", 3, "48 GIB"),
        ("H100-64GB", 1, "H100-64GB"),
    ],
)
def test_gpus_by_name_and_size(text: str, count: int, name: str) -> None:
    found, gpu = parse_gpus(text)
    assert (found, gpu.name) == (count, name)


def test_torch_sees_139_8_gib_of_an_h200() -> None:
    assert parse_gpus("H200")[1].memory_bytes == pytest.approx(150_109_880_320, rel=1e-4)


def test_a_size_is_less_what_the_driver_takes() -> None:
    assert 0.97 * 24 * GIB < parse_gpus("1x24GB")[1].memory_bytes < 24 * GIB


@pytest.mark.parametrize(
    ("text", "computes"),
    [
        ("B200", (True, True, True)),
        ("H100", (True, False, True)),
        ("A100", (False, False, True)),
        ("H100-64GB", (True, False, True)),
        ("V100-16GB", (False, False, False)),
    ],
)
def test_what_they_compute_with(text: str, computes: tuple[bool, bool, bool]) -> None:
    gpu = parse_gpus(text)[1]
    assert (gpu.fp8, gpu.fp4, gpu.bf16) == computes


@pytest.mark.parametrize("text", ["2xFOO", "FOO-80GB", "0.5GB", "1x24"])
def test_an_unknown_one_is_told_with_those_that_are_known(text: str) -> None:
    with pytest.raises(ConfigurationError, match="no GPU") as caught:
        parse_gpus(text)
    assert all(name in caught.value.remedy for name in gpu_names())
    assert "x48GB" in caught.value.remedy


@pytest.mark.parametrize("text", ["", "0xH200", "9999xH200"])
def test_what_names_no_gpus(text: str) -> None:
    with pytest.raises(ConfigurationError, match="names no GPUs"):
        parse_gpus(text)
