import pytest

from serving.supervision.start_log import LogReader, StartReport

# lines as vLLM 0.24 (prefix written before each line) and 0.32 (prefix within the format) write them
V24 = """\
(EngineCore) INFO 12-01 03:01:11 [gpu_model_runner.py:5161] Starting to load model /m/7b...
(EngineCore pid=211) \rLoading safetensors checkpoint shards:   0% Completed | 0/5 [00:00<?, ?it/s]
(EngineCore pid=211) \rLoading safetensors checkpoint shards:  40% Completed | 2/5 [00:01<00:02,  1.13it/s]
(EngineCore) INFO 12-01 03:01:21 [default_loader.py:431] Loading weights took 4.81 seconds
(EngineCore) INFO 12-01 03:01:22 [gpu_model_runner.py:5256] Model loading took 15.63 GiB memory and 5.312345 seconds
(EngineCore) INFO 12-01 03:01:40 [backends.py:1149] Dynamo bytecode transform time: 7.56 s
(EngineCore) INFO 12-01 03:02:10 [monitor.py:53] torch.compile took 41.02 s in total
(EngineCore) INFO 12-01 03:02:12 [gpu_worker.py:509] Available KV cache memory: 106.01 GiB
(EngineCore) INFO 12-01 03:02:12 [kv_cache_utils.py:2146] GPU KV cache size: 1,985,024 tokens
(EngineCore) INFO 12-01 03:02:12 [kv_cache_utils.py:2147] Maximum concurrency for 8,192 tokens per request: 242.31x
(EngineCore pid=211) \rCapturing CUDA graphs (mixed prefill-decode, PIECEWISE):  14%|#  | 7/51 [00:00<00:01, 22.22it/s]
(EngineCore) INFO 12-01 03:02:20 [gpu_model_runner.py:6100] Graph capturing finished in 8 secs, took 0.62 GiB
(EngineCore) INFO 12-01 03:02:20 [core.py:338] init engine (profile, create kv cache, warmup model) took 58.11 s
(APIServer pid=99) INFO:     Application startup complete.
"""
V32_CPU = """\
(EngineCore) INFO 12-01 03:01:11 [cpu_model_runner.py:68] Starting to load model /m/tiny...
Loading safetensors checkpoint shards: 100% Completed | 1/1 [00:00<00:00, 90.1it/s]
(EngineCore) INFO 12-01 03:01:21 [default_loader.py:502] Loading weights took 0.02 seconds
(EngineCore) INFO 12-01 03:02:12 [kv_cache_utils.py:2327] CPU KV cache size: 2,097,152 tokens, Maximum concurrency …
(EngineCore) INFO 12-01 03:01:21 [cpu_model_runner.py:87] Warming up model for the compilation...
(EngineCore) INFO 12-01 03:01:41 [cpu_model_runner.py:91] Warming up done.
(EngineCore) INFO 12-01 03:02:20 [core.py:403] init engine (profile, create kv cache, warmup model) took 20.50 s
"""


def read(text, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(text.encode())
    report, steps = StartReport(), []
    for line in LogReader(path).new_lines():
        report.read(line)
        if not steps or steps[-1] != (report.phase, report.progress):
            steps.append((report.phase, report.progress))
    return report, steps


def test_a_start_of_0_24_on_a_gpu(tmp_path):
    report, steps = read(V24, tmp_path)
    assert steps == [
        ("loading", None), ("loading", 0.0), ("loading", 0.4), ("compiling", None), ("capturing", 0.14),
        ("warming", None),
    ]  # fmt: skip
    assert report.kv_cache_tokens == 1_985_024
    assert report.figures == {
        "weights_seconds": 4.81, "model_seconds": 5.312345, "weights_gib": 15.63, "dynamo_seconds": 7.56,
        "compile_seconds": 41.02, "kv_cache_gib": 106.01, "capture_seconds": 8.0, "graphs_gib": 0.62,
        "engine_seconds": 58.11,
    }  # fmt: skip


def test_a_start_of_0_32_on_a_cpu(tmp_path):
    report, steps = read(V32_CPU, tmp_path)
    assert [phase for phase, _ in steps] == ["loading", "loading", "compiling", "warming"]
    assert report.kv_cache_tokens == 2_097_152


def test_the_slowest_worker_counts():
    report = StartReport()
    for seconds in ("3.5", "9.25", "4.0"):
        report.read(f"(Worker_TP1 pid=7) INFO [default_loader.py:1] Loading weights took {seconds} seconds")
    assert report.figures == {"weights_seconds": 9.25}


def test_phases_do_not_go_back():
    report = StartReport()
    report.read("Graph capturing finished in 3 secs, took 0.5 GiB")
    report.read("Loading safetensors checkpoint shards:  40% Completed")
    assert report.phase == "warming"


def test_lines_come_whole_however_they_are_written(tmp_path):
    path = tmp_path / "log"
    reader = LogReader(path)
    assert list(reader.new_lines()) == []
    with path.open("ab", buffering=0) as file:
        file.write(b"one\ntw")
        assert list(reader.new_lines()) == ["one"]
        file.write("o \xe4\xb8".encode("latin-1"))
        assert list(reader.new_lines()) == []
        file.write(b"\xad\x1b[31mred\x1b[0m\r\rthree\r\n")
        assert list(reader.new_lines()) == ["two 中red", "three"]


def test_the_tail_has_the_unfinished_line_and_no_secret(tmp_path):
    path = tmp_path / "log"
    path.write_text("before\n" + "".join(f"line {n}\n" for n in range(60)) + "key=s3cret end")
    reader = LogReader(path, offset=len("before\n"), secret="s3cret")
    lines = reader.tail(50).splitlines()
    assert len(lines) == 50
    assert lines[-1] == "key=*** end"
    assert "before" not in reader.tail(1000)


def test_what_says_nothing_is_not_in_the_tail(tmp_path):
    path = tmp_path / "log"
    leaks = 'nanobind: leaked 64 types!\n - leaked type "ir.location"\n - ... skipped remainder\n' * 30
    path.write_text(f"EngineDeadError\n{leaks}")
    assert LogReader(path).tail(50) == "EngineDeadError"


@pytest.mark.parametrize("lines", [1, 3])
def test_the_tail_of_a_short_log(tmp_path, lines):
    path = tmp_path / "log"
    path.write_text("x" * 5000 + "\n")
    assert LogReader(path).tail(lines) == "x" * 600
