"""Folders of SpareCores' inspector: outputs made up in the layouts of the tools, and real ones from WHORL_DATASETS."""

import json
import os
from datetime import datetime
from pathlib import Path

import pytest

from tasks.errors import BadInput
from tasks.nodes.execution import ASPECTS

META = {"start": "2024-06-05T13:00:00.250000", "end": "2024-06-05T13:02:00.250000", "exit_code": 0, "version": "1.2"}
NODE = "aws/c4.large"
BW_MEM = "rd 0.016384 1000.50\nrd 16.00 900.25\nwr 16.00 500\n"
STRESS_NG = "\n".join(
    [
        "stress-ng: info:  [1] dispatching hogs: 2 cpu",
        "stress-ng: metrc: [1] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s",
        "stress-ng: metrc: [1]                           (secs)    (secs)    (secs)   (real time) (usr+sys time)",
        "stress-ng: metrc: [1] cpu              20000     20.00     39.00      0.00      1000.50   512.25  98.49  1104",
        "",
    ]
)
OUTPUTS = {
    "bw_mem": (BW_MEM, "memory", {"rd_0_016384": (1000.5, "MB/s"), "rd_16": (900.25, "MB/s"), "wr_16": (500, "MB/s")}),
    "stressng": (STRESS_NG, "cpu", {"cpu_bogo_ops": (1000.5, "/sec"), "cpu_bogo_ops_cpu_time": (512.25, "/sec")}),
    "stressngfull": (
        "1,100.5\n2,190\n",
        "cpu",
        {"bogo_ops_1": (100.5, "/sec"), "bogo_ops_2": (190, "/sec"), "bogo_ops_most": (190, "/sec")},
    ),
    "stressng_benchmarks": (
        json.dumps({"stressors": {"atomic": {"1": {"bogo_ops_per_sec": 3.5}, "4": {"bogo_ops_per_sec": 9}}}}),
        "system",
        {"atomic_1": (3.5, "/sec"), "atomic_n": (9, "/sec")},
    ),
    "redis": (
        '"operation","threads","pipeline","rps","latency"\n"SET",1,1,1000,1.50\n"SET",1,16,4000,4.25\n',
        "application",
        {
            "set_pipeline_1_rps": (1000, "/sec"), "set_pipeline_1_latency": (1.5, "ms"),
            "set_pipeline_16_rps": (4000, "/sec"), "set_pipeline_16_latency": (4.25, "ms"), "rps_most": (4000, "/sec"),
        },
    ),
    "static_web": (
        '"size","threads","connections","rps","latency","failed"\n"1k",8,16,1000,0.000055,0\n',
        "application",
        {
            "1k_threads_8_connections_16_rps": (1000, "/sec"),
            "1k_threads_8_connections_16_latency": (0.000055, "s"), "1k_rps_most": (1000, "/sec"),
        },
    ),
    "membench": (
        "size_kb,operation,bandwidth_mb_s,latency_ns\n16,read,1500.5,0\n16,latency,0,1.25\n",
        "memory",
        {"read_16": (1500.5, "MB/s"), "latency_16": (1.25, "ns")},
    ),
    "passmark": (
        "Version:\n  Major: 11\nResults:\n  Results Complete: true\n  NumTestProcesses: 8\n  CPU_PRIME: 53.5\n"
        "  CPU_avx512: 0\n  ME_LATENCY: 54.25\nSystemInformation:\n  NumCores: 4\n",
        "system",
        {"cpu_prime": (53.5, ""), "me_latency": (54.25, "")},
    ),
    "openssl": (
        "ALGO: -evp sha256 ---\n+R:4869964:sha256:3.000000\nGot: +H:16:64 from 0\nGot: +F:25:sha256:10.5:20.5 from 0\n"
        "+F:25:sha256:21.5:41.5\n",
        "cpu",
        {"sha256_16": (21.5, "B/s"), "sha256_64": (41.5, "B/s")},
    ),
    "compression_text": (
        json.dumps(
            {
                "zstd": {"1": [{"threads": 1, "extra_args": {}, "ratio": 40.5, "compress": 100.5, "decompress": 200}]},
                "lz4": {"3": [{"threads": 2, "extra_args": {"block_size": 64}, "ratio": 50}]},
            }
        ),
        "cpu",
        {
            "zstd_1_threads_1_compress": (100.5, "B/s"), "zstd_1_threads_1_decompress": (200, "B/s"),
            "zstd_1_threads_1_ratio": (40.5, "%"), "lz4_3_threads_2_block_size_64_ratio": (50, "%"),
        },
    ),
    "pgbench_postgres_multi_ro": (
        json.dumps({"score": 45, "score_unit": "tpm", "latency_ms": {"avg": 3.5, "p99": 9}, "latency_stddev_ms": 1.5}),
        "application",
        {"score": (45, "tpm"), "latency_avg": (3.5, "ms"), "latency_p99": (9, "ms"), "latency_stddev": (1.5, "ms")},
    ),
    "llm": (
        json.dumps({"model_filename": "/models/Smol-1B.gguf", "n_prompt": 16, "n_gen": 0, "avg_ts": 83.5})
        + "\n"
        + json.dumps({"model_filename": "/models/Smol-1B.gguf", "n_prompt": 0, "n_gen": 128, "avg_ts": 38.5}),
        "application",
        {"smol_1b_prompt_16": (83.5, "tokens/sec"), "smol_1b_generate_128": (38.5, "tokens/sec")},
    ),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A function that adds the folder of a benchmark and returns the folder of all vendors."""

    def add(benchmark, stdout=None, *, node=NODE, meta=None, **files):
        path = tmp_path / "data" / node / benchmark
        path.mkdir(parents=True)
        (path / "meta.json").write_text(json.dumps({**META, **(meta or {})}) if not isinstance(meta, str) else meta)
        for name, content in {"stdout": stdout, **files}.items():
            if content is not None:
                (path / name.replace("__", ".")).write_text(content)
        return tmp_path / "data"

    return add


@pytest.mark.parametrize(("benchmark", "text", "aspect", "metrics"), [(name, *told) for name, told in OUTPUTS.items()])
def test_an_output_becomes_the_metrics_of_an_execution(found_in, folder, benchmark, text, aspect, metrics):
    found = found_in(folder(benchmark, text))
    (row,) = found.executions.to_dict("records")
    assert (row["node"], row["machine_type"], row["aspect"]) == (NODE, "c4.large", aspect)
    assert row["benchmark"] == benchmark.replace("_", "-")
    assert (row["started_at"], row["duration_s"]) == (datetime(2024, 6, 5, 13, 0, 0, 250_000), 120.0)
    assert found.told(row["execution_id"]) == metrics
    assert (found.n_read, found.logs["log"].to_list()) == (1, [text])


def test_the_scores_of_geekbench_stand_in_a_file_of_their_own(found_in, folder):
    scores = {
        "Single-Core Performance": {"Score": {"score": 1202}, "Clang": {"score": 1561, "description": "7 Klines/sec"}}
    }
    found = found_in(folder("geekbench", "Geekbench 6\n", results__json=json.dumps(scores)))
    assert found.told(found.column("execution_id")[0]) == {
        "single_core_score": (1202, ""),
        "single_core_clang": (1561, ""),
    }


def test_nodes_are_told_apart_by_vendor_and_instance_wherever_the_reading_begins(found_in, folder):
    folder("bw_mem", BW_MEM, node="gcp/c4.large")
    root = folder("bw_mem", BW_MEM)
    assert found_in(root).column("node") == ["aws/c4.large", "gcp/c4.large"]
    assert found_in(root / "aws").column("node") == found_in(root / NODE / "bw_mem").column("node") == ["aws/c4.large"]


def test_a_benchmark_that_failed_is_kept_as_failed(found_in, folder):
    root = folder("bw_mem", None, meta={"exit_code": 1})
    folder("redis", OUTPUTS["redis"][0], meta={"exit_code": 137})
    found = found_in(root)
    assert (found.column("status"), found.column("n_metrics")) == (["failed", "failed"], [0, 5])


def test_half_a_character_in_the_name_of_a_metric_is_written_out(tmp_path, found_in):
    folder = tmp_path / "aws" / "c4.large" / "compression_text"
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text(json.dumps(META))
    (folder / "stdout").write_text('{"zstd": {"1": [{"threads": "\\ud800", "ratio": 40.5}]}}')
    assert found_in(tmp_path).metrics["metric"].to_list() == ["zstd_1_threads_\\ud800_ratio"]


@pytest.mark.parametrize(
    ("benchmark", "printed", "said"),
    [
        ("stressng_benchmarks", '{"stressors": ' + "[" * 100_000, "malformed JSON (nested too deeply)"),
        ("redis", "rps,latency\n1," + "2" * 140_000 + "\n", "not a line of CSV (field larger than field limit"),
    ],
)
def test_an_output_that_python_gives_up_on_is_refused_with_its_line(tmp_path, found_in, benchmark, printed, said):
    folder = tmp_path / "aws" / "c4.large" / benchmark
    folder.mkdir(parents=True)
    (folder / "meta.json").write_text(json.dumps(META))
    (folder / "stdout").write_text(printed)
    found = found_in(tmp_path)
    assert len(found.executions) == 0 and any(said in reason for reason in found.reasons)


REFUSED = {
    "lscpu": ("lscpu", "{}", {}, "describes the machine, is no benchmark"),
    "unknown": ("newbench", "1", {}, "no parser for the output of 'newbench'"),
    "silent": ("bw_mem", None, {}, "printed nothing"),
    "no value": ("stressng", "stress-ng: info: nothing\n", {}, "no value in its output"),
    "not ended": ("bw_mem", None, {"exit_code": None}, "has not ended (no exit_code)"),
    "no start": ("bw_mem", BW_MEM, {"start": "soon"}, "start is no time; expected ISO 8601"),
    "ended early": (
        "bw_mem", BW_MEM, {"end": "2024-06-05T12:00:00"},
        "ended_at is before started_at; expected start, then end",
    ),
    "future": (
        "bw_mem", BW_MEM, {"start": "2999-06-05T12:00:00", "end": None},
        "started_at lies in the future; expected a time that has passed, in UTC",
    ),
    "a list": ("bw_mem", BW_MEM, "[]", "meta.json holds no object"),
}  # fmt: skip


@pytest.mark.parametrize(("benchmark", "text", "meta", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_folder_that_is_no_execution_is_refused_with_its_reason(found_in, folder, benchmark, text, meta, reason):
    folder("redis", OUTPUTS["redis"][0], node="gcp/n1")
    found = found_in(folder(benchmark, text, meta=meta))
    assert (found.reasons, found.n_read, len(found.executions)) == ([f"{NODE}/{benchmark}: {reason}"], 2, 1)


LINES = {
    "bw_mem": ("bw_mem", BW_MEM + "rd 32.00 quick\n", "line 4: no operation with size and bandwidth"),
    "pairs": ("stressngfull", "1,100\n2,\n", "line 2: no number of workers with their operations a second"),
    "fields": ("redis", OUTPUTS["redis"][0] + '"SET",1\n', "line 4: 2 fields; the header has 5"),
    "infinite": ("redis", OUTPUTS["redis"][0] + '"SET",1,64,inf,1\n', "line 4: rps is no finite number"),
    "sizes": ("openssl", OUTPUTS["openssl"][0] + "+F:25:md5:1.5\n", "line 6: 1 speeds for 2 sizes"),
    "a text": (
        "geekbench", '{"single_core": {"clang": {"score": "1,234"}, "score": {"score": 5}}}',
        "line 1: single_core_clang (1,234) is no finite number",
    ),
    "NaN": (
        "stressng_benchmarks", '{"stressors": {"a": {"1": {"bogo_ops_per_sec": NaN}, "2": {"bogo_ops_per_sec": 2}}}}',
        "line 1: a_1 (nan) is no finite number",
    ),
    "no object": (
        "pgbench_x", '{"score": 45, "latency_ms": 3, "latency_stddev_ms": 1}',
        "line 1: latency_ms holds no object",
    ),
    "negative": ("bw_mem", BW_MEM + "rd 64.00 -5\n", "line 4: rd_64 (-5) is negative"),
    "twice": ("bw_mem", BW_MEM + "rd 16.00 5\n", "line 4: rd_16 (5) stands there twice; the first counts"),
    "a row": (
        "stressng", STRESS_NG + STRESS_NG.splitlines()[3].replace("512.25", "nan"),
        "line 5: a row of the table without its numbers",
    ),
    "speeds": ("openssl", OUTPUTS["openssl"][0] + "+F:25:md5:nan:1.5\n", "line 6: no algorithm with its speeds"),
    "a model": ("llm", OUTPUTS["llm"][0] + '\n{"avg_ts": 5}', "line 3: no model_filename"),
}  # fmt: skip


@pytest.mark.parametrize(("benchmark", "text", "reason"), LINES.values(), ids=LINES)
def test_a_line_that_cannot_be_used_is_refused_alone(found_in, folder, benchmark, text, reason):
    found = found_in(folder(benchmark, text))
    assert (found.reasons, found.n_read, len(found.executions)) == ([f"{NODE}/{benchmark}, {reason}"], 1, 1)


def test_what_printed_nothing_is_missing_and_listed(found_in, folder):
    folder("passmark", OUTPUTS["passmark"][0])
    folder("stressng_benchmarks", '{"stressors": {"ipsec-mb": {"1": null}, "a": {"1": {"bogo_ops_per_sec": 2}}}}')
    root = folder("llm", '{"model_filename": "a.gguf", "n_gen": 8, "avg_ts": null}\n' + OUTPUTS["llm"][0])
    found = found_in(root)
    missing = [list(one) for one in found.executions["missing_metrics"]]
    assert (missing, found.reasons) == ([["a_generate_8"], ["cpu_avx512"], ["ipsec_mb_1"]], [])


def test_a_manifest_labels_folders_of_benchmarks_and_those_above_them(found_in, folder, tmp_path):
    folder("redis", OUTPUTS["redis"][0], node="gcp/n1")
    root = folder("bw_mem", BW_MEM)
    labels = f"data,,eu,\ndata/gcp/n1,,,none\ndata/{NODE}/bw_mem,big,us,memory-4\n"
    (tmp_path / "labels.csv").write_text(f"path,machine_type,region,dose\n{labels}")
    found = found_in(root, manifest=str(tmp_path / "labels.csv"))
    assert (found.column("machine_type"), found.column("region")) == (["big", "n1"], ["us", "eu"])
    assert (found.column("is_stressed"), found.column("dose")) == ([True, False], ["memory-4", "none"])


def test_a_folder_without_meta_json_is_refused(found_in, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=r"no meta\.json in it; expected a folder with <vendor>/<instance>"):
        found_in(tmp_path / "empty", reader="sparecores")


@pytest.fixture(scope="module")
def real():
    path = Path(os.environ.get("WHORL_DATASETS", "-")) / "sparecores"
    if not path.is_dir():
        pytest.skip("needs sparecores/ in the folder WHORL_DATASETS")
    return path


def test_every_real_folder_is_an_execution_or_refused_with_its_reason(real, found_in):
    found = found_in(real)
    assert found.n_read == len(list(real.glob("*/*/*/meta.json")))
    assert len(found.executions["node"].unique()) == 13
    assert set(found.column("aspect")) <= set(ASPECTS) - {"unknown"}
    twice = [reason for reason in found.reasons if reason.endswith("stands there twice; the first counts")]
    assert all("compression_text, line 1: " in reason for reason in twice)  # some levels were run twice
    kinds = {reason.rpartition("/")[2] for reason in found.reasons if reason not in twice}
    assert kinds == {"lscpu: describes the machine, is no benchmark", "timing: no parser for the output of 'timing'"}
    assert min(found.column("n_metrics")) > 0


def test_half_an_output_gives_no_value_and_says_so(found_in, folder):
    found = found_in(folder("compression_text", OUTPUTS["compression_text"][0][:60]))
    assert found.reasons[0] == f"{NODE}/compression_text: no value in its output"
    assert found.reasons[1].startswith(f"{NODE}/compression_text, line 1: malformed JSON")


def test_a_broken_meta_json_is_refused(found_in, folder):
    found = found_in(folder("bw_mem", BW_MEM, meta='{"start": '), reader="sparecores")
    assert found.reasons[0].startswith(f"{NODE}/bw_mem: meta.json is malformed")
