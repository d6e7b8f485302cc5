"""The labelled runs of some files, and what cannot be used of them."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tasks.errors import BadInput
from tasks.progress import report_progress
from tasks.warehouse.landing import sha256_of
from tasks.workloads.intake import REMOTE, find_files, read_file
from tasks.workloads.labels import absolute
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.telemetry import Telemetry

NAMED = 3  # files that a message names
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Labelled:
    """runs: with a label, in the order of the files. n_unlabelled: runs without one. n_rows, n_refused: rows of the
    files behind runs, and those that no run could be made of. data_sha256: of the files' contents."""

    runs: list[Telemetry]
    n_unlabelled: int
    n_rows: int
    n_refused: int
    data_sha256: str


def read_labelled(paths: Sequence[str], params: ReadParams, reader: str = "") -> Labelled:
    """Read all files into memory; a run id that two files give is told apart by the path.

    Raises BadInput for a file that is wrong as a whole, and if no run has a label."""
    files = find_files(list(paths), params.manifest)
    runs: list[Telemetry] = []
    taken: set[str] = set()
    n_rows = n_refused = 0
    digest = hashlib.sha256()
    for done, path in enumerate(files):
        report_progress("reading telemetry", done, len(files))
        prepared, refused = read_file(path, params, reader)
        own = [one.telemetry for one in prepared]
        n_rows, n_refused = n_rows + sum(one.n_rows for one in prepared), n_refused + len(refused)
        digest.update((_sha256_of_runs(own) if path.startswith(REMOTE) else sha256_of(path)).encode())
        for one in own:
            run_id = one.run_id if one.run_id not in taken else f"{absolute(path)}/{one.run_id}"
            taken.add(run_id)
            runs.append(replace(one, run_id=run_id))
    labelled = [run for run in runs if run.workload is not None]
    if not labelled:
        raise _without_labels(files, len(runs), n_refused)
    logger.info("read %d runs of %d files, %d rows refused", len(labelled), len(files), n_refused)
    return Labelled(labelled, len(runs) - len(labelled), n_rows, n_refused, digest.hexdigest())


def _without_labels(files: Sequence[str], n_runs: int, n_refused: int) -> BadInput:
    named = ", ".join(files[:NAMED]) + (" …" if len(files) > NAMED else "")
    if not n_runs:
        return BadInput(named, f"no run that can be used ({n_refused} rows refused)", "telemetry of labelled runs")
    return BadInput(
        named,
        f"none of {n_runs} runs has a label",
        "runs that say which workload they are of",
        "name it with --label-from stem|parent|column:NAME, --manifest FILE or a column workload",
    )


def _sha256_of_runs(runs: Sequence[Telemetry]) -> str:
    """Of what an address gave: it has no bytes of its own."""
    digest = hashlib.sha256()
    for run in runs:
        digest.update(repr((run.run_id, run.counters)).encode())
        digest.update(run.at_s.tobytes() + np.ascontiguousarray(run.values).tobytes())
    return digest.hexdigest()
