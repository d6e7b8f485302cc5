"""From job rows in the warehouse to medians, histograms, smoothed PMFs and posterior: beside pandas, in one run.

Each side is a process of its own on one thread. CPU time is that of the work, without imports; memory is the peak of
the whole process. Both must give the same counts. BENCH_SIZES=3000000,30000000 also does the large one, which pandas
needs about 3.5 GB for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.warehouse.connection import writing
from tasks.warehouse.place import Warehouse

pytestmark = pytest.mark.bench

SIZES = [int(n) for n in os.environ.get("BENCH_SIZES", "300000,3000000").split(",")]
AT_ONCE = 1_000_000
LARGE, HUGE = 3_000_000, 30_000_000
LEAST_CPU = {LARGE: 2.0, HUGE: 2.0}  # times less than pandas
LEAST_MEMORY = 1.8
MOST_MB = 1024
DRAW = """
INSERT INTO jobs.runs BY NAME
WITH draws AS (
    SELECT i,
        hash(8 * i) / 18446744073709551616.0 AS u1, hash(8 * i + 1) / 18446744073709551616.0 AS u2,
        hash(8 * i + 2) / 18446744073709551616.0 AS u3, hash(8 * i + 3) / 18446744073709551616.0 AS u4
    FROM range($first, $last) AS t(i)
),
runs AS (
    SELECT i, floor(9000 * u1 * u1)::BIGINT AS job, u4, sqrt(-2 * ln(1 - u2)) * cos(2 * pi() * u3) AS z FROM draws
)
SELECT
    'bench' AS source, 'run-' || i AS run_id, 'completed' AS status, TRUE AS is_simulated, 'batch' AS batch_id,
    'extract_' || job || '_daily#' || left(md5(job::VARCHAR), 16) AS group_key,
    TIMESTAMP '2025-01-01' + to_microseconds(i * 90_000) AS submitted_at,
    submitted_at AS started_at,
    round(
        5 * exp((job % 83) / 12.0) * exp((0.02 + (job % 17) / 40.0) * z)
        * CASE WHEN u4 < 0.02 THEN 12 WHEN u4 < 0.1 AND job % 3 = 0 THEN 1.6 ELSE 1 END, 3
    ) AS runtime_s,
    submitted_at + to_microseconds((runtime_s * 1e6)::BIGINT) AS ended_at
FROM runs
"""
BOTH = """
import hashlib, json, resource, sys
from pathlib import Path
import numpy as np, scipy.ndimage, scipy.sparse
from tasks.jobs.normalisation import Bins, pmfs_of, smooth
from tasks.jobs.shapes import log_posterior
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse
warehouse = Warehouse(home=Path(sys.argv[1]), memory_mb=600, threads=1)
CENTRES = np.random.default_rng(0).dirichlet(np.ones(200), 8)
def cpu_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
def tell(used_s, histories, labels):
    # not ru_maxrss, which a new program inherits from the one that started it
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
    digest = hashlib.sha256()
    for history in histories:
        digest.update(np.ascontiguousarray(history, dtype=np.int64))
    print(json.dumps({"cpu_s": used_s, "peak_mb": peak, "counts": digest.hexdigest(), "labels": labels}))
"""
WHORL = f"""{BOTH}
from tasks.jobs.characterise import KINDS, count_groups
from tasks.jobs.params import CharacteriseParams
started, histories, labels = cpu_s(), [], []
with reading(warehouse) as connection:
    counts = count_groups(connection, "bench", CharacteriseParams())
for kind in KINDS:
    history = counts.dense(kind, np.arange(counts.n_groups))
    smoothed = smooth(pmfs_of(history), counts.bins[kind], 1)
    posterior = counts.log_posteriors(kind, CENTRES)
    histories.append(history)
    labels.append(int(posterior[:, -1].argmax(axis=1).sum()))
tell(cpu_s() - started, histories, labels)
"""
PANDAS = f"""{BOTH}
import pandas as pd
RUNS = '''SELECT group_key, coalesce(submitted_at, started_at) AS submitted_at, runtime_s FROM jobs.runs
    WHERE source = 'bench' AND status IN ('completed', 'unknown') AND what_if IS NULL AND runtime_s IS NOT NULL
    AND coalesce(submitted_at, started_at) IS NOT NULL'''
started, histories, labels = cpu_s(), [], []
with reading(warehouse) as connection:
    table = connection.sql(RUNS).to_arrow_table()  # twice as fast as .df()
keys = table["group_key"].combine_chunks().dictionary_encode()
key_of = pd.Categorical.from_codes(keys.indices.to_numpy(), categories=keys.dictionary.to_pandas())
runs = pd.DataFrame({{"group": key_of.reorder_categories(sorted(key_of.categories)),
                      "at": table["submitted_at"].to_numpy(), "runtime_s": table["runtime_s"].to_numpy()}})
del table, keys, key_of
n, at = len(runs), runs["at"].to_numpy()
bounds = np.partition(at, [int(0.5 * n), int(0.8 * n)])[[int(0.5 * n), int(0.8 * n)]]
part = np.searchsorted(bounds, at, side="right")
medians = runs[part == 0].groupby("group", observed=False)["runtime_s"].median()
group = runs["group"].cat.codes.to_numpy()
median_s, runtime_s, n_groups = medians.to_numpy()[group], runs["runtime_s"].to_numpy(), len(medians)
rows = (group.astype(np.int64) * 3 + part) * 200
for bins, values in (
    (Bins(kind="ratio", low=0, high=10), runtime_s / median_s),
    (Bins(kind="delta", low=-900, high=900), runtime_s - median_s),
):
    counts = np.bincount(rows + bins.index(values), minlength=n_groups * 600).reshape(n_groups, 3, 200)
    smoothed = smooth(pmfs_of(counts[:, 0]), bins, 1)
    counts = np.concatenate([counts, counts.sum(axis=1, keepdims=True)], axis=1)
    posterior = log_posterior(counts.reshape(-1, 200), CENTRES, empty_bin_prior=0.001).reshape(n_groups, 4, -1)
    histories.append(counts[:, 0])
    labels.append(int(posterior[:, -1].argmax(axis=1).sum()))
tell(cpu_s() - started, histories, labels)
"""


def draw_log(home: Path, n_runs: int) -> None:
    """A warehouse with so many runs of 9,000 jobs, of sizes that differ a hundredfold."""
    with writing(Warehouse(home=home, memory_mb=1024, threads=1)) as connection:
        for first in range(0, n_runs, AT_ONCE):
            connection.execute(DRAW, {"first": first, "last": min(n_runs, first + AT_ONCE)})
        connection.execute("CHECKPOINT")


@pytest.mark.parametrize("n_runs", SIZES)
def test_characterising_takes_less_than_pandas(tmp_path: Path, capsys: pytest.CaptureFixture[str], n_runs: int) -> None:
    draw_log(tmp_path / "home", n_runs)
    found = {}
    for name, program in (("whorl", WHORL), ("pandas", PANDAS)):
        command = [sys.executable, "-c", program, str(tmp_path / "home")]
        found[name] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    ours, theirs = found["whorl"], found["pandas"]
    cpu, memory = theirs["cpu_s"] / ours["cpu_s"], theirs["peak_mb"] / ours["peak_mb"]
    with capsys.disabled():
        print(f"\n{n_runs:,} runs, load {os.getloadavg()[0]:.1f}")
        for name, one in found.items():
            print(f"  {name:7} {one['cpu_s']:6.2f} s of CPU, {one['peak_mb']:7,.0f} MiB")
        print(f"  times less CPU {cpu:.2f}, memory {memory:.2f}")
    assert ours["counts"] == theirs["counts"]
    assert ours["labels"] == theirs["labels"]
    if n_runs in LEAST_CPU:
        assert cpu >= LEAST_CPU[n_runs]
        assert memory >= LEAST_MEMORY
        assert ours["peak_mb"] < MOST_MB
