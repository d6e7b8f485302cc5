"""A file of any format, hurt in any way, ends in rows or in one line; never in a traceback, never without end.

Each case is made of the name of a sample and a number, which seed what is done to it; one that fails is made again by
`python tests/test_mutated_inputs.py SAMPLE NUMBER`, which shows the traceback. Cases run in a process of their own
that has paid for its imports, within a processor time and an address space; one that ends it is named."""

import gzip
import json
import os
import random
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tasks.nodes.readers.sparecores import DESCRIBES

TESTS = Path(__file__).parent
RECORDED = TESTS.parent / "data" / "recorded"
DATASETS = Path(os.environ.get("WHORL_DATASETS", "-"))
CPU_S, SPACE_BYTES, HANGS_S = 60, 3 << 30, 300
LONGEST = 200_000  # bytes of a sample
LONGEST_LINE = 2000  # characters of a refusal
NOBODY_THOUGHT_OF = re.compile(r": cannot be read( behind row [0-9,]+)? \(")  # what input_faults says
N_FAST, N_SLOW = 150, 2400


@dataclass(frozen=True)
class Sample:
    """A good file, or a folder of them, of which `target` is hurt. params: of the word's ReadParams."""

    word: str
    files: dict[str, bytes]
    target: str
    path: str
    params: dict[str, Any] = field(default_factory=dict)


def one(word: str, name: str, content: bytes | str, **params: Any) -> Sample:
    data = content.encode() if isinstance(content, str) else content
    return Sample(word, {f"set/{name}": data}, f"set/{name}", f"set/{name}", params)


# ---------------------------------------------------------------------------------------------------- good files


def parquet(table: Any) -> bytes:
    import pyarrow.parquet as pq

    file = BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def csv_of(table: Any) -> str:
    return str(table.to_pandas().to_csv(index=False))


@cache
def samples() -> dict[str, Sample]:
    return {**job_logs(), **telemetry(), **benchmarks(), **manifests()}


def job_logs() -> dict[str, Sample]:
    import pyarrow.parquet as pq

    fixtures = TESTS / "jobs/readers/fixtures"
    own = pq.read_table(RECORDED / "jobs/runs-0007.parquet").slice(0, 60)
    flat = own.drop_columns([one.name for one in own.schema if "list" in str(one.type) or "struct" in str(one.type)])
    swf = "; Version: 2.2\n; UnixStartTime: 1000000000\n; Queue:  3  express\n" + "".join(
        f"{at}  {100 * at}  20  {300 + at}  4  250.5 2048 8  600  4096 1 12  3  45  3  1  6  10\n"
        for at in range(1, 60)
    )
    sacct = "JobID|Submit|Start|End|State|Elapsed|MaxRSS|TotalCPU|User|JobName\n" + "".join(
        f"{at}|2024-12-01T11:58:00|2024-12-01T12:00:00|2024-12-01T12:10:00|COMPLETED|00:10:00|2G|00:31.5|ada|etl\n"
        f"{at}.batch|2024-12-01T11:58:00|2024-12-01T12:00:00|2024-12-01T12:10:00|COMPLETED|00:10:00|7K|00:31.5|ada|b\n"
        for at in range(1, 40)
    )
    pbs = "".join(
        f"01/01/2026 01:{at}:00;E;{at}.head;user=ada group=lab jobname=relax queue=short ctime=1767225540 "
        f"start=1767225600 end=17672260{at} exec_host=n1/0-3+n2/1*2 Resource_List.nodes=2:ppn=4 Exit_status=0 "
        f"Resource_List.mem=2gb Resource_List.walltime=01:00:00 resources_used.cput=12 "
        f"resources_used.walltime=00:07:{at}\n"
        for at in range(10, 50)
    )
    grid = "".join(
        f"all.q:n1:lab:ada:relax:{at}:sge:0:1767225540:1767225600:1767226500:0:0:900:1.5:0.5:5160:0:0:0:0:1:0:0:0:0:0:0:0:"
        "0:0:NONE:staff:NONE:4:0:3500.25:1.5:0.25:-l h_rt=3600,h_vmem=2G -pe smp 4:0.0:NONE:1048576.0:0:0\n"
        for at in range(40)
    )
    qacct = "".join(
        f"=====\nqname all.q\nowner ada\njobname relax\njobnumber {at}\ntaskid undefined\nfailed 0\nexit_status 0\n"
        f"qsub_time Thu Jan  1 00:59:00 2026\nstart_time Thu Jan  1 01:00:00 2026\n"
        f"end_time Thu Jan  1 01:15:{at} 2026\n"
        "slots 4\nru_wallclock 900s\ncpu 3500.250s\nmaxvmem 1.500MB\ncategory -l h_rt=900,h_vmem=2G\n"
        for at in range(10, 50)
    )
    rolled = fixtures / "spark/eventlog_v2_app-20261121053437-0000"
    parts = {f"{rolled.name}/{file.name}": file.read_bytes() for file in sorted(rolled.iterdir())}
    spark = {
        f"spark-{kind}": one("jobs", name, (fixtures / "spark" / name).read_bytes())
        for kind, name in {
            "plain": "local-1795238849560", "zstd": "local-1795239164096.zstd", "lz4": "local-1795239201756.lz4",
            "snappy": "local-1795239239606.snappy", "lzf": "local-1795239400168.lzf",
        }.items()
    }  # fmt: skip
    return {
        "own-parquet": one("jobs", "log.parquet", parquet(own)),
        "own-csv": one("jobs", "log.csv", csv_of(flat)),
        "own-csv-gz": one("jobs", "log.csv.gz", gzip.compress(csv_of(flat).encode())),
        "swf": one("jobs", "log.swf", swf),
        "swf-gz": one("jobs", "log.swf.gz", gzip.compress(swf.encode())),
        "slurm": one("jobs", "sacct.txt", sacct, time_zone="America/New_York"),
        "pbs": one("jobs", "20260101", pbs),
        "grid-engine": one("jobs", "accounting", grid),
        "qacct": one("jobs", "qacct.txt", qacct, time_zone="America/New_York"),
        "airflow-csv": one("jobs", "task_instance.csv", (fixtures / "airflow/task_instance.csv").read_bytes()),
        "airflow-json": one("jobs", "ti.json", (fixtures / "airflow/task_instances.json").read_bytes()),
        **spark,
        "spark-rolled": Sample("jobs", parts, max(parts), rolled.name),
        "prefect": Sample("prefect", {"flow_runs": (fixtures / "prefect_api.json").read_bytes()}, "flow_runs", ""),
    }


def telemetry() -> dict[str, Sample]:
    import pyarrow.parquet as pq

    fixtures = TESTS / "workloads/readers/fixtures"
    own = pq.read_table(RECORDED / "workloads/flagged-0001.parquet").slice(0, 120)
    spect = "TS,SKT,CPU,CID,CPU operating frequency (in GHz),CPU utilization %,read (MB/sec),TMA_(%)\n" + "".join(
        f"{1_700_000_000 + 5 * at},0,,,2.5,{at},100,1\n" for at in range(60)
    )
    first = "time,metric_CPU operating frequency (in GHz),metric_CPU utilization %\n" + "".join(
        f"{5 * at},2.5,{at}\n" for at in range(60)
    )
    wide = "timestamp,cpu-cycles,disk_free\n" + "".join(f"{1_700_000_000 + at},{at}0,{100 - at}\n" for at in range(60))
    values = [[1_700_000_000 + at, str(3 * at)] for at in range(10)]
    labels = [{"__name__": name, "instance": "a:9100", "job": "node"} for name in ("requests_total", "load")]
    answers = {
        "series": labels,
        "metadata": {"requests": [{"type": "counter"}]},
        "targets": {"activeTargets": [{"scrapeInterval": "5s"}]},
        "query_range": {"resultType": "matrix", "result": [{"metric": one, "values": values} for one in labels]},
    }
    perf = {f"{name}": one("workloads", name, (fixtures / name).read_bytes()) for name in os.listdir(fixtures)}  # noqa: PTH208
    return {
        "wide-parquet": one("workloads", "runs.parquet", parquet(own)),
        "wide-own-csv": one("workloads", "runs.csv", csv_of(own.select(own.column_names[:20]))),
        "wide-csv": one("workloads", "counters.csv", wide),
        "perfspect": one("workloads", "host_metrics.csv", spect),
        "perfspect-1": one("workloads", "metric_out.sys.csv", first),
        **perf,
        "prometheus": Sample("prometheus", {"answers": json.dumps(answers).encode()}, "answers", ""),
    }


def benchmarks() -> dict[str, Sample]:
    import pyarrow as pa

    logs = TESTS / "nodes/tools/logs"
    tools = {
        f"{tool}-{name}": one("nodes", f"node1/{name}", (logs / tool / name).read_bytes(), label_from="parent")
        for tool, names in {
            "fio": ("3.33.json", "3.33-plus.json", "3.33.txt", "2.2.10.txt"),
            "ioping": ("1.3.txt", "1.3.json", "1.3-raw.txt", "1.3-fast.txt", "1.3-periods.json"),
            "iperf3": ("3.12.txt", "3.12.json", "3.12-bidir.txt", "3.12-parallel.json"),
            "qperf": ("0.4.11.txt", "0.4.11-fast.txt"),
            "sysbench": ("cpu-1.0.20.txt", "memory-1.0.20.txt", "cpu-0.4.12.txt"),
        }.items()
        for name in names
    }
    long = "node,machine_type,benchmark,started_at,metric,value,unit\n" + "".join(
        f"n{at % 3},m5.large,cpu-sysbench,2026-01-{at // 3 + 1:02}T12:00:00,rate,{at}.5,/sec\n" for at in range(60)
    )
    azure = {
        "test_suite": "fio", "test_name": "Random Read 4KB", "lifespan": "long", "region": "eastus",
        "sku": "Standard_D8s_v5", "unit": "MB/s", "vm_id": "7", "started_at": "2023-05-01T12:00:00",
        "runtime_s": "30.5", "value": "812.0",
    }  # fmt: skip
    rows = [azure | {"vm_id": str(at)} for at in range(30)]
    recorded = RECORDED / "nodes/executions-0007.parquet"
    made = {
        "executions": one("nodes", recorded.name, recorded.read_bytes()),
        "long-csv": one("nodes", "results.csv", long),
        "azure-csv": one(
            "nodes", "eastus.csv", f"{','.join(azure)}\n" + "".join(f"{','.join(row.values())}\n" for row in rows)
        ),
        "azure-parquet": one("nodes", "eastus.parquet", parquet(pa.Table.from_pylist(rows))),
        "perona": one("nodes", "run.db", perona()),
    }
    return {**tools, **made, **sparecores()}


def perona() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        with closing(sqlite3.connect(path)) as database:
            database.executescript(
                """CREATE TABLE benchmarks (id TEXT, type TEXT, chaos_desired BOOLEAN, chaos_applied BOOLEAN,
                    chaos_id TEXT, node_id TEXT, pod_id TEXT, started DATETIME, finished DATETIME,
                    metric_collection_status TEXT, image TEXT, options TEXT, logs TEXT);
                CREATE TABLE benchmark_metrics_2 (benchmark_id TEXT, name TEXT, text_value TEXT, value REAL, unit TEXT);
                CREATE TABLE node_metrics (node_name TEXT, metric TEXT, timestamp REAL, value REAL);
                INSERT INTO benchmarks VALUES ('cpu-sysbench-a', 'cpu-sysbench', 0, 0, '', 'worker-2@@@supporter', '',
                    '2022-06-14 12:00:00.000000', '2022-06-14 12:00:31.000000', '', 'sysbench:1', '--threads=16', 'x');
                INSERT INTO benchmark_metrics_2 VALUES ('cpu-sysbench-a', 'events', '7.5', 7.5, '1/s');
                INSERT INTO node_metrics VALUES ('worker-2', 'cpu', 1655208001.5, 0.25);"""
            )
            database.commit()
        return path.read_bytes()


def sparecores() -> dict[str, Sample]:
    meta = json.dumps({"start": "2024-06-05T13:00:00", "end": "2024-06-05T13:02:00", "exit_code": 0, "version": "1.2"})
    outputs = {
        "bw_mem": "rd 0.016384 1000.50\nrd 16.00 900.25\nwr 16.00 500\n",
        "redis": '"operation","threads","pipeline","rps","latency"\n"SET",1,1,1000,1.50\n"SET",1,16,4000,4.25\n',
        "stressng_benchmarks": json.dumps({"stressors": {"atomic": {"1": {"bogo_ops_per_sec": 3.5}}}}),
    }
    if DATASETS.exists():
        there = DATASETS / "sparecores/gcp/e2-medium"
        found = {one.parent.name: one.read_text() for one in there.glob("*/stdout")}
        outputs |= {name: text for name, text in found.items() if 0 < len(text) < LONGEST and name not in DESCRIBES}
    folder = "set/aws/c4.large"
    made = {
        f"sparecores-{name}": Sample(
            "nodes",
            {f"{folder}/{name}/meta.json": meta.encode(), f"{folder}/{name}/stdout": text.encode()},
            f"{folder}/{name}/stdout",
            "set",
        )
        for name, text in outputs.items()
    }
    whole = made["sparecores-bw_mem"]
    return {**made, "sparecores-meta": Sample("nodes", whole.files, f"{folder}/bw_mem/meta.json", "set")}


def manifests() -> dict[str, Sample]:
    perf = (TESTS / "workloads/readers/fixtures/perf.csv").read_bytes()
    log = (TESTS / "nodes/tools/logs/sysbench/cpu-1.0.20.txt").read_bytes()
    entry = {"path": "perf.csv", "workload": "redis", "input": "a", "round": "1"}
    about = {
        "path": "a.txt", "node": "n1", "benchmark": "cpu-sysbench", "started_at": "2026-01-01T00:00:00", "dose": "1",
    }  # fmt: skip
    made = {}
    for word, file, told in (("workloads", perf, entry), ("nodes", log, about)):
        name = f"set/{told['path']}"
        texts = {"csv": f"{','.join(told)}\n{','.join(told.values())}\n", "jsonl": json.dumps(told) + "\n"}
        for kind, text in texts.items():
            files = {name: file, f"set/manifest.{kind}": text.encode()}
            made[f"{word}-manifest-{kind}"] = Sample(
                word, files, f"set/manifest.{kind}", name, {"manifest": f"set/manifest.{kind}"}
            )
    return made


# ---------------------------------------------------------------------------------------------------- what hurts them

NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
NUMBERS = (
    b"9" * 400, b"-" + b"9" * 400, b"1e308", b"-1e308", b"1e400", b"nan", b"NaN", b"inf", b"-Infinity", b"", b"-1",
    b"0", b"-0.0", b"20260101", b"20260101120000", b"2026-01-01", b"01/02/2026", b"1700000000000", b"46023.5",
    b"1e-320",
    b"9223372036854775808", b"0x10", b"1_000", b"1,5", "\u0661\u0662".encode(), b"true", b"null", b'"', b"\x00",
    b"\xff",
)  # fmt: skip
Mutation = Callable[[bytes, random.Random], bytes]


def flip(data: bytes, rng: random.Random) -> bytes:
    hurt = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 20))):
        hurt[rng.randrange(len(hurt))] ^= 1 << rng.randrange(8)
    return bytes(hurt)


def insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    more = rng.choice(
        (rng.randbytes(rng.randrange(1, 40)), b"\x00" * 9, b"\n" * 5, b"\r", b'"', b"a" * 140_000, data[:99])
    )
    return data[:at] + more + data[at:]


def delete(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice((1, 7, 300)) :]


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))] if rng.random() < 0.9 else b""


def numbers(data: bytes, rng: random.Random) -> bytes:
    places = list(NUMBER.finditer(data))
    for place in sorted(rng.sample(places, min(len(places), rng.choice((1, 1, 5, 40)))), key=lambda one: -one.start()):
        data = data[: place.start()] + rng.choice(NUMBERS) + data[place.end() :]
    return data


def same_numbers(data: bytes, rng: random.Random) -> bytes:
    value = rng.choice(NUMBERS)
    return NUMBER.sub(lambda found: value if rng.random() < 0.7 else found[0], data)


def lines(data: bytes, rng: random.Random) -> bytes:
    rows = data.split(b"\n")
    at, other = rng.randrange(len(rows)), rng.randrange(len(rows))
    what = rng.randrange(5)
    if what == 0:
        rows.insert(other, rows[0])  # a header again
    elif what == 1:
        rows[at], rows[other] = rows[other], rows[at]
    elif what == 2:
        del rows[at]
    elif what == 3:
        rows[at : at + 1] = [rows[at]] * 3
    else:
        del rows[0]
    return b"\n".join(rows)


def columns(data: bytes, rng: random.Random) -> bytes:
    rows = data.split(b"\n")
    separator = max((b",", b"|", b";", b"\t", b" "), key=data.count)
    width = max(rows[0].count(separator) + 1, 2)
    left, right, what = rng.randrange(width), rng.randrange(width), rng.randrange(5)
    new = rng.choice((b";", b"\t", b"|", b" ", b",,"))

    def changed(row: bytes) -> bytes:
        cells = row.split(separator)
        if max(left, right) >= len(cells):
            return row
        if what == 0:
            cells[left], cells[right] = cells[right], cells[left]
        elif what == 1:
            del cells[left]
        elif what == 2:
            cells.insert(left, cells[right])
        elif what == 3:
            cells[left] = rng.choice(NUMBERS)
        return (new if what == 4 else separator).join(cells)

    return b"\n".join(changed(row) for row in rows)


def nesting(data: bytes, rng: random.Random) -> bytes:
    depth = rng.choice((50, 990, 5_000, 100_000))
    deep = rng.choice((b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth))
    places = [found.end() for found in re.finditer(rb":\s*", data)] or [0]
    at = rng.choice(places)
    end = re.compile(rb"[,}\]\n]|$").search(data, at)
    return data[:at] + deep + data[end.start() if end else at :]


def objects(data: bytes, rng: random.Random) -> bytes:
    """JSON (a document, or lines of it) in which values have other types, keys are missing or stand elsewhere."""
    text, is_lines = data.decode("utf-8", "replace"), False
    try:
        told = json.loads(text)
    except ValueError:
        is_lines = True
        rows = text.split("\n")
        at = rng.randrange(len(rows))
        try:
            told = json.loads(rows[at])
        except ValueError:
            return nesting(data, rng)
    holders: list[Any] = []

    def walk(node: Any) -> None:
        if isinstance(node, (dict, list)) and node:
            holders.append(node)
            for inner in node.values() if isinstance(node, dict) else node:
                walk(inner)

    walk(told)
    for _ in range(rng.choice((1, 3)) if holders else 0):
        node = rng.choice(holders)
        key = rng.choice(list(node)) if isinstance(node, dict) and node else 0
        other = [None, [], {}, "x", -1, 1e308, True, [[1]], {"a": {}}, 10**400, "\ud800", "\x00", rng.choice(holders)]
        if not node:
            continue
        if rng.random() < 0.3:
            del node[key]
        else:
            node[key] = rng.choice(other)
    try:
        told_text = json.dumps(told)
    except ValueError:  # it holds itself now
        return flip(data, rng)
    if is_lines:
        rows[at] = told_text
    return ("\n".join(rows) if is_lines else told_text).encode()


def table(data: bytes, rng: random.Random) -> bytes:
    """Parquet with columns that are missing, of other types, under each other's names, or hold other values."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    told = pq.read_table(BytesIO(data))
    names, n_rows = told.column_names, told.num_rows
    at, other = rng.randrange(len(names)), rng.randrange(len(names))
    if (what := rng.randrange(4)) == 0:
        return parquet(told.drop_columns([names[at]]))
    if what == 1:
        names[at], names[other] = names[other], names[at]
        return parquet(told.rename_columns(names))
    values: list[Any] = [
        None, -1, 2**63 - 1, float("nan"), float("inf"), 1e308, "", "x", "9" * 400, "20260101", True, b"\xff", [1],
        [None], {"a": 1}, [{"a": "b"}],
    ]  # fmt: skip
    value = rng.choice(values)
    column = [value if what == 2 or rng.random() < 0.5 else None for _ in range(n_rows)]
    return parquet(told.set_column(at, names[at], pa.array(column)))


BYTES: tuple[Mutation, ...] = (flip, insert, delete, truncate)
TEXT: tuple[Mutation, ...] = (numbers, numbers, same_numbers, lines, columns)


def mutated(sample: Sample, name: str, number: int) -> bytes:
    """The file that is hurt, hurt once or twice. The same name and number give the same bytes."""
    rng, data = random.Random(f"{name} {number}"), sample.files[sample.target]
    is_packed = data.startswith(b"\x1f\x8b") and rng.random() < 0.6  # what is inside is hurt
    data = gzip.decompress(data) if is_packed else data
    for _ in range(rng.choice((1, 1, 2))):
        ways = BYTES
        if data.startswith(b"PAR1") and data.endswith(b"PAR1"):
            ways = (*BYTES, table, table, table)
        elif b"\x00" not in data[:1000] and data:
            is_json = data.lstrip()[:1] in (b"{", b"[")
            ways = (*BYTES, *TEXT, nesting, *((objects, objects, objects) if is_json else ()))
        way = rng.choice(ways)
        try:
            data = way(data, rng) if data else data
        except Exception:  # what is hurt once may be no Parquet any more
            data = flip(data, rng)
    return gzip.compress(data, mtime=0) if is_packed else data


# ---------------------------------------------------------------------------------------------------- how they are read


def read(sample: Sample, folder: Path, content: bytes) -> str:
    """What a command would make of it: `n rows`, or the line that refuses it."""
    from tasks.errors import WhorlError

    for name, data in {**sample.files, sample.target: content}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    try:
        return f"{READ[sample.word](sample, folder, content)} rows"
    except WhorlError as error:
        told = str(error)
        assert "\n" not in told and len(told) < LONGEST_LINE, told
        assert not NOBODY_THOUGHT_OF.search(told), told  # a reader says itself what is wrong with its format
        return told


def read_job_log(sample: Sample, folder: Path, content: bytes) -> int:
    from tasks.jobs.intake import Intake, land_log
    from tasks.jobs.params import GroupParams, ReadParams
    from tasks.warehouse.place import Warehouse

    intake = Intake("log", "", ReadParams(**sample.params), GroupParams())
    return land_log(Warehouse(home=folder / "home"), str(folder / sample.path), intake).tables["runs"].n_rows


def with_manifest(sample: Sample, folder: Path) -> dict[str, Any]:
    return {name: str(folder / told) if name == "manifest" else told for name, told in sample.params.items()}


def read_telemetry(sample: Sample, folder: Path, content: bytes) -> int:
    from tasks.warehouse.place import Warehouse
    from tasks.workloads.intake import Intake, land_telemetry
    from tasks.workloads.params import ReadParams

    intake = Intake("log", "", ReadParams(**with_manifest(sample, folder)))
    return land_telemetry(Warehouse(home=folder / "home"), str(folder / sample.path), intake).tables["runs"].n_rows


def read_benchmarks(sample: Sample, folder: Path, content: bytes) -> int:
    from tasks.nodes.intake import Intake, land_executions
    from tasks.nodes.params import ReadParams
    from tasks.warehouse.place import Warehouse

    intake = Intake("log", "", ReadParams(**with_manifest(sample, folder)))
    batch = land_executions(Warehouse(home=folder / "home"), str(folder / sample.path), intake)
    return batch.tables["executions"].n_rows


def read_prefect(sample: Sample, folder: Path, content: bytes) -> int:
    import httpx

    from tasks.intake.files import guarded
    from tasks.intake.http_server import Patience
    from tasks.jobs.params import ReadParams
    from tasks.jobs.readers.prefect_api import PrefectApiReader

    try:
        kept = json.loads(content)
    except (ValueError, RecursionError):
        kept = None
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        kind = request.url.path.removeprefix("/api/").removesuffix("/filter")
        asked.append(kind)
        there = kept.get(kind, []) if isinstance(kept, dict) else None
        if there is None:
            return httpx.Response(200, content=content)
        return httpx.Response(200, content=json.dumps(there if asked.count(kind) == 1 else []))

    url, patience = "http://127.0.0.1:4200/api", Patience(timeout_s=30, tries=1, backoff_s=0)
    chunks = guarded(url, PrefectApiReader(httpx.MockTransport(answer), patience=patience).read(url, ReadParams()))
    return sum(len(chunk.rows) for chunk in chunks)


def read_prometheus(sample: Sample, folder: Path, content: bytes) -> int:
    import httpx

    from tasks.intake.files import input_faults
    from tasks.intake.http_server import Patience
    from tasks.workloads.params import PrometheusParams, ReadParams, RegularParams
    from tasks.workloads.prepared import file_labels, prepare
    from tasks.workloads.readers.prometheus import PrometheusReader

    try:
        kept = json.loads(content)
    except (ValueError, RecursionError):
        kept = None

    def answer(request: httpx.Request) -> httpx.Response:
        if not isinstance(kept, dict):
            return httpx.Response(200, content=content)
        there = kept.get(request.url.path.removeprefix("/api/v1/"))
        return httpx.Response(200, content=json.dumps({"status": "success", "data": there}))

    patience = Patience(timeout_s=30, tries=1, backoff_s=0)
    span = {"start": "1700000000", "end": "1700000009", "match": ["{}"]}
    asked = ReadParams(
        prometheus=PrometheusParams(**span),  # type: ignore[arg-type]
        regular=RegularParams(min_samples=1),
    )
    url = "http://127.0.0.1:9090"
    with input_faults(url):
        found = prepare(
            PrometheusReader(httpx.MockTransport(answer), patience=patience).read(url, asked),
            file_labels(url, asked),
            asked.regular,
        )
    return len(found[0])


READ: dict[str, Callable[[Sample, Path, bytes], int]] = {
    "jobs": read_job_log, "workloads": read_telemetry, "nodes": read_benchmarks, "prefect": read_prefect,
    "prometheus": read_prometheus,
}  # fmt: skip


# ---------------------------------------------------------------------------------------------------- many of them


def cases(n: int) -> list[tuple[str, int]]:
    names = sorted(samples())
    return [(names[at % len(names)], at // len(names)) for at in range(n)]


def run_case(name: str, number: int) -> str:
    sample = samples()[name]
    folder = Path(tempfile.mkdtemp(prefix="whorl-mutated-"))
    try:
        return read(sample, folder, mutated(sample, name, number))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def work() -> None:
    """Run the cases that stand in standard input, one a line; print what each came to, as JSON."""
    for name in ("own-parquet", "wide-parquet", "executions"):  # imports are paid before the limits hold
        run_case(name, 0)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + SPACE_BYTES, resource.RLIM_INFINITY))
    for line in sys.stdin:
        name, number = line.rsplit(maxsplit=1)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        spent_s = usage.ru_utime + usage.ru_stime
        resource.setrlimit(resource.RLIMIT_CPU, (int(spent_s) + CPU_S, resource.RLIM_INFINITY))
        try:
            told = {"came_to": run_case(name, int(number))}
        except BaseException as error:
            told = {"raised": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(told), flush=True)


def outcomes(asked: list[tuple[str, int]]) -> Iterator[tuple[str, int, dict[str, str]]]:
    """What each case came to; one that ends its process, or is not done in time, is named and the next ones go on."""
    left = list(asked)
    while left:
        text = "".join(f"{name} {number}\n" for name, number in left)
        process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdin and process.stdout
        process.stdin.write(text)
        process.stdin.close()
        for line in within(process, HANGS_S):
            yield *left.pop(0), json.loads(line)
        if left:
            yield *left.pop(0), {"raised": f"the process ended ({process.wait()})"}
        process.wait()


def within(process: "subprocess.Popen[str]", seconds: float) -> Iterator[str]:
    """The lines that a process prints; it is killed if one takes longer."""
    from threading import Timer

    assert process.stdout
    while True:
        timer = Timer(seconds, process.kill)
        timer.start()
        line = process.stdout.readline()
        timer.cancel()
        if not line:
            return
        yield line


def check(asked: list[tuple[str, int]]) -> None:
    found = list(outcomes(asked))
    faults = [f"{name} {number}: {told['raised']}" for name, number, told in found if "raised" in told]
    assert not faults, (
        f"{len(faults)} of {len(asked)}, each made again by `python {__file__} SAMPLE NUMBER`: {faults[:20]}"
    )
    n_read = sum(told["came_to"].endswith(" rows") for _, _, told in found)
    assert n_read > len(found) / 3, "most files are beyond recognition: they test no reader"


def test_150_mutated_files_end_in_rows_or_in_one_line() -> None:
    check(cases(N_FAST))


@pytest.mark.slow
def test_2250_more_mutated_files_end_in_rows_or_in_one_line() -> None:
    check(cases(N_SLOW)[N_FAST:])


@pytest.mark.parametrize("name", sorted(samples()))
def test_the_samples_are_good_before_they_are_hurt(tmp_path: Path, name: str) -> None:
    sample = samples()[name]
    told = read(sample, tmp_path, sample.files[sample.target])
    assert told.endswith(" rows") != (name == "spark-lzf"), told
    assert not told.startswith("0 "), told


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(run_case(sys.argv[1], int(sys.argv[2])))
    else:
        work()
