"""What a job is in a source: the key by which the past predicts best, why, and its runs grouped by it.

A key is decided once: as it was set, else when enough runs are there, at the latest by a training. Files that come
later are grouped by it. One that is not name and plan stands in the options of landed batches, so the landing
folder alone gives it again."""

import logging
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tasks.errors import BadInput, NotFound
from tasks.intake.files import Chunk, no_refusals
from tasks.jobs.columns import RUNS_SCHEMA
from tasks.jobs.distribution import Floats
from tasks.jobs.grouping import COLUMNS, group_keys
from tasks.jobs.intake import WORD
from tasks.jobs.params import GroupParams, KeyPart, SplitParams
from tasks.jobs.predict.mixture import LEVELS, order_quantiles
from tasks.jobs.predict.peers import LEAST_RUNTIME_S, MOST_RUNS, earlier_runs
from tasks.jobs.predict.predictor import empirical_of
from tasks.jobs.predict.preparation import assign_periods, read_runs, with_ends
from tasks.jobs.scores import bootstrap_difference
from tasks.quantities import share
from tasks.warehouse import landing
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.ingest import ingest
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import data_version, read_row, replace_rows

logger = logging.getLogger(__name__)
GIVEN = "as the log is grouped"
NAMED = ("name", "full_name", "short_name")
CANDIDATES: tuple[tuple[KeyPart, ...], ...] = (
    ("name",),
    ("name", "cpus"),
    ("name", "queue"),
    ("user", "name"),
    ("user", "name", "limit"),
    ("user", "name", "cpus", "limit"),
    ("user", "short_name"),
    ("full_name",),
    ("user", "full_name"),
    ("user", "cpus", "limit"),
    ("user", "cpus"),
)
MOST_SCORED = 5_000  # runs, evenly over time
LEAST_SCORED = 100  # of fewer runs a gain of LEAST_GAIN is within luck
LEAST_RECURRING = 0.5  # share of the runs whose job ran at least twice; below it a key makes no jobs
LEAST_GAIN = 0.05  # of CRPS
AS_SET = "as it was set"
OTHERWISE_SET = "is_set AND (parts <> '{parts}' OR NOT {is_set})"
LOADED = "SELECT batch_id FROM ops.files WHERE word = $word AND source = $source"
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class KeyChoice:
    """by: parts of the key, empty for the given one; reason: a sentence; crps_s: seconds, of the history rule by key
    over the training runs (D2), empty where they were too few."""

    by: tuple[KeyPart, ...]
    reason: str
    crps_s: Mapping[str, float]

    def regrouped(self, runs: pd.DataFrame) -> pd.DataFrame:
        """The runs with the group_key of this choice."""
        return runs.assign(group_key=_keys(runs, self.by)) if self.by else runs


def choose_key(runs: pd.DataFrame, split: SplitParams, present: Sequence[KeyPart] = ()) -> KeyChoice:
    """The key of the jobs of a log. runs: of read_runs, index 0 … n - 1; those of D3 are not looked at.

    present: parts of the key that they are grouped by. Another is taken where its history rule (the last runs of the
    job that had ended before) has a CRPS lower by LEAST_GAIN. Where the jobs so far recur, it must be lower beyond
    noise, too (95 % interval over jobs), and names stay a part of the key: they are what people call their jobs; keys
    that the log itself gives stay as they are. Raises BadInput as assign_periods does."""
    part = assign_periods(runs, split)
    known = with_ends(runs[(part != "D3").to_numpy()]).reset_index(drop=True)
    # what group_keys makes a key of without a setting
    so_far = present or _kept(("name", "plan") if _kept(("plan",), known) else ("name", "user", "cpus"), known)
    training = np.flatnonzero((part[part != "D3"] == "D2").to_numpy())
    if len(training) < LEAST_SCORED:
        return KeyChoice((), _too_few(so_far), {})
    rows = training[np.unique(np.linspace(0, len(training) - 1, min(MOST_SCORED, len(training))).astype(np.intp))]
    scores = {GIVEN: _crps_s(known, rows)}
    given_s = float(scores[GIVEN].mean())
    recurs = known["group_key"].duplicated(keep=False)
    is_recurring = float(recurs.mean()) >= LEAST_RECURRING
    if is_recurring and not present and (known["group_key"] == _keys(known, ())).mean() < LEAST_RECURRING:  # not ours
        return KeyChoice((), "runs of one job are those that the log, or conf/jobs.yaml, says", {GIVEN: given_s})
    has_names = "name" in known and float((recurs & known["name"].notna()).mean()) >= LEAST_RECURRING
    candidates = filter(None, dict.fromkeys(_kept(by, known) for by in CANDIDATES))
    keys = {",".join(by): (by, _keys(known, by)) for by in candidates}
    scores |= {name: _crps_s(known.assign(group_key=key), rows) for name, (_, key) in keys.items()}
    crps_s = {name: float(score.mean()) for name, score in scores.items()}
    luck = ""
    for name in sorted(keys, key=lambda name: crps_s[name]):
        by, key = keys[name]
        if crps_s[name] >= (1 - LEAST_GAIN) * given_s:
            break
        gain = share(1 - crps_s[name] / given_s)
        comparison = f"history predicts {gain} better (CRPS {crps_s[name]:,.4g} s, not {given_s:,.4g} s)"
        if has_names and not any(key_part in NAMED for key_part in by):
            continue
        rng, keys_of_rows = np.random.default_rng(0), key.iloc[rows].to_numpy()
        apart = bootstrap_difference(scores[name], scores[GIVEN], keys_of_rows, rng)
        if is_recurring and (apart.high is None or apart.high >= 0):
            luck = luck or f"; by {_words(by)} {comparison}, which may be luck"
            continue
        return KeyChoice(by, f"{_job(by)}: {comparison} than by {_words(so_far)}", crps_s)
    named = " and keeps their names" if has_names else ""
    least = f": no other key predicts at least {share(LEAST_GAIN)} better{named} (CRPS {given_s:,.4g} s)"
    return KeyChoice((), f"{_job(so_far)}{luck or least}", crps_s)


def _job(by: Sequence[KeyPart]) -> str:
    return f"runs of one job share {_words(by)}"


def _too_few(by: Sequence[KeyPart] = ()) -> str:
    return f"{_job(by)}; finished runs are too few to choose another key"


def _words(by: Sequence[KeyPart]) -> str:
    """Parts of a key as a person reads them."""
    if not by:
        return "name and plan, or name, user and cpus"
    names = [part.replace("_", " ") for part in by]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _kept(by: Sequence[KeyPart], runs: pd.DataFrame) -> tuple[KeyPart, ...]:
    """The parts that some run has."""
    columns = {part: [COLUMNS.get(part, part)] if part != "cpus" else ["requested_cpus", "used_cpus"] for part in by}
    return tuple(part for part in by if any(name in runs and runs[name].notna().any() for name in columns[part]))


def _keys(runs: pd.DataFrame, by: Sequence[KeyPart]) -> pd.Series:
    return group_keys(runs.drop(columns="group_key"), GroupParams(by=list(by)))


def _crps_s(runs: pd.DataFrame, rows: Rows) -> Floats:
    """CRPS of the (n + 1) rule over the last runs of each row's job; all earlier runs stand in for none: (n_rows,)."""
    earlier = earlier_runs(runs.iloc[rows], runs)
    log_s = np.log(np.maximum(earlier.values("runtime_s"), LEAST_RUNTIME_S))
    quantiles = order_quantiles(earlier.latest(log_s, MOST_RUNS))
    runtime_s = runs["runtime_s"].to_numpy(dtype=float)
    all_runs = np.quantile(np.log(np.maximum(runtime_s[: max(int(rows[0]), 1)], LEAST_RUNTIME_S)), LEVELS)
    return empirical_of(np.where(np.isfinite(quantiles), quantiles, all_runs)).crps(runtime_s[rows])


@dataclass(frozen=True)
class SourceKey:
    """What a job is in a source. by: parts of the key, empty for name and plan; reason: a sentence; better: what would
    predict better by now, with the command that changes it, or empty; is_set: by the user; data_version: of the data
    that were grouped by it, empty where not all were."""

    by: tuple[KeyPart, ...]
    reason: str
    better: str = ""
    is_set: bool = False
    data_version: str = field(default="", compare=False)


def read_key(warehouse: Warehouse, source: str) -> SourceKey | None:
    """What a job is in a source; None where that is not decided yet."""
    row = read_row(warehouse, "jobs.keys", source) if warehouse.file.exists() else None
    if not row:
        return None
    parts = tuple(cast(KeyPart, part) for part in row["parts"].split(",") if part)
    return SourceKey(parts, row["reason"], row["better"], bool(row["is_set"]), row["data_version"])


def in_use(warehouse: Warehouse, source: str, group: GroupParams) -> GroupParams:
    """How files of a source are grouped: as it is set, else as those before."""
    key = None if group.by else read_key(warehouse, source)
    return group.model_copy(update={"by": list(key.by)}) if key else group


def settle_key(warehouse: Warehouse, source: str, group: GroupParams, *, is_final: bool = False) -> SourceKey:
    """What a job is in a source, decided where it is not yet, and its runs grouped by it.

    group.by: as the user sets it; empty: a key in use stays. is_final: too few runs decide for name and plan, which is
    left open otherwise. Twice changes nothing; killed in between, the next call goes on."""
    before = read_key(warehouse, source)
    is_cut_short = bool(before and before.by and not before.data_version)  # killed before all runs were grouped by it
    if group.by:
        key = SourceKey(tuple(group.by), f"{_job(group.by)}, {AS_SET}", is_set=True)
    elif before and (before.is_set or is_cut_short or before.data_version == _version(warehouse, source)):
        key = before
    else:
        best = _best_key(warehouse, source, before)
        if best is None and not is_final:
            return SourceKey((), _too_few())
        key = best or SourceKey((), _too_few())
    own = "" if group.by else OTHERWISE_SET.format(parts=",".join(key.by), is_set=key.is_set)
    is_ours = key == before or _write(warehouse, source, key, "", own)  # what follows may be killed
    if is_ours and key.by:
        _regroup(warehouse, source, group.model_copy(update={"by": list(key.by)}))
    if is_ours and _write(warehouse, source, key, _version(warehouse, source), own):
        return key
    return settle_key(warehouse, source, group, is_final=is_final)  # another process has set one meanwhile


def ids_now(warehouse: Warehouse, batch_ids: Sequence[str]) -> list[str]:
    """The ids that count of files that were landed under these: grouping anew makes others."""
    folder = warehouse.landing_folder
    now = {batch.origin.file_key: batch.batch_id for batch in landing.live_batches(folder, WORD)}
    return [now[landing.find_batch(folder, WORD, batch_id).origin.file_key] for batch_id in batch_ids]


def _best_key(warehouse: Warehouse, source: str, before: SourceKey | None) -> SourceKey | None:
    """The key that predicts best, or the one in use with what would be better; None for too few runs."""
    landed = [batch.origin.options.get("by", ()) for batch in _batches(warehouse, source)]
    if before is None and any(landed):  # of files that were read when a source had no key
        by = next(tuple(by) for by in reversed(landed) if by)
        return SourceKey(by, f"{_job(by)}, as its files are grouped")
    present = before.by if before else ()
    try:
        choice = choose_key(read_runs(warehouse, source), SplitParams(), present)
    except (BadInput, NotFound):  # of runs that no summary can be made of, which says so
        return before
    if before is None:
        return SourceKey(choice.by, choice.reason) if choice.crps_s else None
    command = shlex.join(["whorl", "jobs", "train", "--source", source, "--group-by", ",".join(choice.by)])
    return replace(before, better=f"{choice.reason}; {command} changes it" if choice.by else "")


def _batches(warehouse: Warehouse, source: str) -> list[landing.Batch]:
    return [batch for batch in landing.live_batches(warehouse.landing_folder, WORD) if batch.origin.source == source]


def _version(warehouse: Warehouse, source: str) -> str:
    with reading(warehouse) as connection:
        return data_version(connection, WORD, source)


def _write(warehouse: Warehouse, source: str, key: SourceKey, version: str, unless: str) -> bool:
    row = {"parts": ",".join(key.by), "reason": key.reason, "better": key.better, "is_set": key.is_set}
    keys = pd.DataFrame([row | {"data_version": version}])
    return replace_rows(warehouse, WORD, {"source": source}, {"keys": keys}, unless=unless)


def _regroup(warehouse: Warehouse, source: str, group: GroupParams) -> None:
    """Land the files of a source that are grouped otherwise, as reading them so would, and load what is not loaded."""
    folder = warehouse.landing_folder
    for batch in _batches(warehouse, source):
        if batch.origin.options.get("by") != group.by:
            read = {name: value for name, value in batch.origin.options.items() if name not in GroupParams.model_fields}
            origin = batch.origin.model_copy(update={"options": read | group.model_dump(exclude_defaults=True)})
            landing.land(folder, origin, {"runs": RUNS_SCHEMA}, _grouped(folder, batch, group))
    loaded = set(fetch(warehouse, LOADED, {"word": WORD, "source": source})["batch_id"])
    anew = [batch.batch_id for batch in _batches(warehouse, source) if batch.batch_id not in loaded]
    for batch_id in anew:
        ingest(warehouse, WORD, batch_id)
    logger.info("source %s: %d files grouped anew by %s", source, len(anew), _words(group.by))


def _grouped(folder: str, batch: landing.Batch, group: GroupParams) -> Iterator[Chunk]:
    """The rows of a landed batch by another key, and what was refused of its file."""
    with landing.local_file(folder, batch, "quarantine") as path:
        refused = pq.read_table(path).to_pandas()
    with landing.local_file(folder, batch, "runs") as path:
        yield Chunk(RUNS_SCHEMA.empty_table().to_pandas(), refused, {}, tuple(batch.understood))
        for rows in pq.ParquetFile(path).iter_batches():
            flat = [name for name in rows.schema.names if not pa.types.is_list(rows.schema.field(name).type)]
            keys = group_keys(rows.select(flat).to_pandas(), group)
            yield Chunk(rows.to_pandas(types_mapper=pd.ArrowDtype).assign(group_key=keys), no_refusals(), {})
