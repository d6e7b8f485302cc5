"""Two plain tables with columns of their own, for `whorl jobs evaluate --features`:
python -m tests.studies.own_columns DATA FOLDER SEED writes them and prints the commands that score them.

Neither data set says when a run was made, so they are put into a drawn order, an hour apart: C3O's Spark jobs, and the
nf-core tasks of Lotaru on Google Cloud's machines."""

import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd

CLOUD = ("n1", "n2", "c2")
LOTARU = (
    "machine", "NumberSequences", "WorkflowInputSize", "TaskInputSize", "TaskInputSizeUncompressed", "cpus", "memory",
)  # fmt: skip
TIMED = ("run_id", "submitted_at", "runtime_s", "name")


def c3o(data: Path) -> pd.DataFrame:
    """One row a run, with all columns of C3O."""
    tables = [pd.read_csv(file, sep="\t").assign(name=file.stem) for file in sorted((data / "c3o").glob("*.tsv"))]
    return pd.concat(tables).rename(columns={"gross_runtime": "runtime_s"})


def lotaru(data: Path) -> pd.DataFrame:
    """One row a task on one of CLOUD, with what is known before it runs."""
    files = [file for name in CLOUD for file in sorted((data / "lotaru/execution_reports" / name).glob("*/*.csv"))]
    runs = pd.concat([pd.read_csv(file).assign(machine=file.parts[-3]) for file in files])
    named = runs["Workflow"] + "." + runs["Task"].astype(str).str.replace(":", "_")
    return runs.assign(runtime_s=runs["Realtime"] / 1000, name=named)[["runtime_s", "name", *LOTARU]]


def in_drawn_order(runs: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The runs with an id and a time of submission."""
    runs = runs.sample(frac=1, random_state=seed).reset_index(drop=True)
    times = pd.Timestamp("2026-01-01") + pd.to_timedelta(3600 * np.arange(len(runs)), unit="s")
    return runs.assign(run_id=[f"r{at}" for at in range(len(runs))], submitted_at=times.strftime("%Y-%m-%dT%H:%M:%SZ"))


def main(data: str, folder: str, seed: str) -> None:
    """Write both tables."""
    for name, table in (("c3o", c3o(Path(data))), ("lotaru", lotaru(Path(data)))):
        runs, file = in_drawn_order(table, int(seed)), Path(folder) / f"{name}.csv"
        runs.to_csv(file, index=False)
        own = ",".join(str(column) for column in runs if column not in TIMED)
        print(f"whorl jobs evaluate {shlex.quote(str(file))} --features {own} --known-before {own} --json")


if __name__ == "__main__":
    main(*sys.argv[1:])
