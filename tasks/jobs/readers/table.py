"""Tables of runs, a row a run: whorl's own columns, and anybody's, in Parquet, CSV or JSON.

Needed: a start or a submission, and a runtime or an end. What others call the columns, and what exports of known
systems hold, is in exports.py; params.columns says it otherwise. What was understood goes with the first chunk. Times
are timestamps, ISO text, epoch seconds or local dates; one without a zone is of params.time_zone, UTC if that is empty.
Without an id a run is called after name and start, without a name after the file. params.features says which other
columns are kept in `features`; the rest is left out, and named. Lists (vertices, skyline, skus) need Parquet."""

import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import PurePosixPath
from typing import Any, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tasks.errors import BadInput, headless, quoted
from tasks.intake.aliases import (
    BLANK,
    CLOCK_ALONE,
    DATE_ALONE,
    DAYS,
    LOCAL_DATE,
    Meaning,
    amounts,
    are_all,
    date_order,
    distinct_texts,
    duration_s,
    has_decimal_commas,
    is_number,
    is_text,
    iso_dates,
    meaning_of,
    merged,
    named,
    named_in_words,
    single_column,
    size_bytes,
    trimmed,
    unit_of_values,
)
from tasks.intake.cells import LAST_S, check_zone, flags, plain, utc_times
from tasks.intake.files import UTF8_MARK, Chunk, all_refusals, key_of, refusals, split_header
from tasks.intake.tables import (
    AROUND,
    JSON_MARKS,
    MAGIC,
    PANDAS_INDEX,
    RowBatch,
    check_once,
    check_renamed,
    header_line,
    keys_of,
    table_batches,
)
from tasks.jobs.columns import (
    ALL_COLUMNS,
    FLAT_COLUMNS,
    LIST_COLUMNS,
    MADE_COLUMNS,
    NUMBER_COLUMNS,
    SHOWN_CHARS,
    TEXT_COLUMNS,
    TIME_COLUMNS,
    TIMESTAMP,
    is_exit_code,
    is_flag,
    status_of,
    status_of_exit_code,
    status_of_flag,
    unknown_status,
    vet_runs,
)
from tasks.jobs.params import Measured, ReadParams, Status, dimension_of
from tasks.jobs.readers.exports import (
    ALIASES,
    BINARY,
    ERROR,
    HHMMSS,
    KINDS,
    LAST,
    NO_MORE,
    NOUNS,
    SYSTEMS,
    TEXTS,
    WORDS,
    System,
)
from tasks.quantities import SPELLINGS, Dimension, factor_of, unit_in_name

logger = logging.getLogger(__name__)
NEEDED = (("run_id",), ("name", "group_key"), ("started_at", "submitted_at"), ("runtime_s", "ended_at"))
EXPECTED = "the columns " + ", ".join(" or ".join(names) for names in NEEDED)
ALL = "all"  # as the only feature: every column that stands for nothing else
MEASURED: tuple[Measured, ...] = get_args(Measured)
# behind what came of a run
STATES = ("status.state", "state.life_cycle_state", "life_cycle_state", "status", "state", "stat")
MOST_WORDS = 12  # of statuses that are said
MOST_UNREAD = 12  # of columns that are left out
TEXTS_SEEN = 10_000  # of a column, each once: enough to tell how its values are written
NO_TIMES = ("0", "0.0", "-1")  # no run began in 1970


@dataclass(frozen=True)
class Understanding:
    """What the columns of a table mean.

    columns: by ours; features: kept under their own names. system: the export that it is, if any. job: what its runs
    are called where no column says. lines: what was understood, in words."""

    columns: dict[str, Meaning]
    features: list[str]
    system: System | None
    job: str
    lines: list[str]


def sniff(head: bytes, path: str) -> bool:  # noqa: ARG001
    """Any Parquet file, and text whose header or keys name a time and a duration, or two times."""
    head = head.removeprefix(UTF8_MARK).lstrip()
    if head.startswith(MAGIC):
        return True
    if head.startswith(JSON_MARKS):
        names = keys_of(head)
        # of nested names only the last part is known in the beginning of a JSON text
        last = ([[key.rpartition(".")[2] for key in has.split("|")] for has in system.has] for system in SYSTEMS)
        if any(all(any(key in names for key in keys) for keys in has) for has in last):
            return True
    else:
        names, _ = split_header(header_line(head).decode("utf-8", "replace"), FLAT_COLUMNS)
    times = (*NEEDED[2], *NEEDED[3])
    nested = {ours: [one.rpartition(".")[2] for one in ALIASES[ours] if "." in one] for ours in times}
    called = {ours: [*_candidates(ours, names, ()), *named(names, nested[ours], ())] for ours in times}
    return all(any(called[ours] for ours in group) for group in NEEDED[2:])


def read(path: str, params: ReadParams) -> Iterator[Chunk]:
    """See Reader.read; raises BadSetting for a time zone that does not exist."""
    check_zone(params.time_zone or "UTC")
    now, counts = datetime.now(UTC).replace(tzinfo=None), Counter[str]()
    understood: list[Understanding] = []

    def choose(sample: pa.Table) -> list[str]:
        understood.append(understand(path, sample, params))
        wanted = [name for meaning in understood[0].columns.values() for name in meaning.theirs]
        return list(dict.fromkeys([*wanted, *understood[0].features]))

    for number, batch in enumerate(table_batches(path, params.limits, choose, row="run", known=FLAT_COLUMNS)):
        chunk = _chunk(batch, understood[0], params, now, counts)
        yield replace(chunk, understood=tuple(understood[0].lines)) if number == 0 else chunk


def _chunk(
    batch: RowBatch, understood: Understanding, params: ReadParams, now: datetime, counts: Counter[str]
) -> Chunk:
    rows, faults = to_runs(batch.table, understood, params)
    rows, has_names = _completed(rows, understood, counts)
    bad = [row for row, fault in enumerate(faults) if fault]
    unread = refusals(batch.places[bad], [faults[row] for row in bad], [batch.raw(row) for row in bad])
    chunk = vet_runs(rows.assign(place=batch.places).drop(index=bad), params, now)
    places, why = chunk.refused["place"], chunk.refused["reason"].to_list()
    vetoed = refusals(places, why, [batch.raw(int(row)) for row in np.searchsorted(batch.places, places)])
    return Chunk(chunk.rows, all_refusals([batch.refused, unread, vetoed]), {}, names_in_ids=has_names)


def _completed(rows: pd.DataFrame, understood: Understanding, counts: Counter[str]) -> tuple[pd.DataFrame, bool]:
    """The rows with what follows from others: names, ids, states of runs that failed or go on; and whether ids hold
    names. counts: ids that were made so far."""
    system, columns = understood.system, understood.columns
    if understood.job:
        rows = rows.assign(name=pd.Series(understood.job, index=rows.index, dtype="str"))
    elif system and system.without:
        rows = rows.assign(name=rows["name"].str.replace(system.without, "", regex=True))
    if ERROR in rows:
        has_failed = rows[ERROR].notna() & (rows["status"] == "completed") if "status" in rows else rows[ERROR].notna()
        status = rows["status"] if "status" in rows else pd.Series("completed", index=rows.index, dtype="str")
        rows = rows.assign(status=status.mask(has_failed, "failed")).drop(columns=ERROR)
    if "status" in rows and not columns["status"].is_exact:
        missing = pd.Series(np.nan, index=rows.index)
        is_open = rows["status"].isna() & rows.get("ended_at", missing).isna() & ~(rows.get("runtime_s", missing) > 0)
        rows = rows.assign(status=rows["status"].mask(is_open & rows.get("started_at", missing).notna(), "running"))
    clocks = [columns[name].parts[0] for name in ("started_at", "ended_at") if name in columns]
    if len(clocks) == 2 and clocks[0] == clocks[1] and columns["ended_at"].joint == BLANK:  # one date, past midnight
        is_next = rows["ended_at"] < rows["started_at"]
        rows = rows.assign(ended_at=rows["ended_at"].mask(is_next, rows["ended_at"] + pd.Timedelta(days=1)))
    if system and system.adds_tries and {"runtime_s", "started_at", "ended_at"} <= set(rows):
        span_s = (rows["ended_at"] - rows["started_at"]).dt.total_seconds()
        taken_s = rows["runtime_s"].mask(rows["runtime_s"] > span_s, span_s)
        rows = rows.assign(runtime_s=taken_s.where(rows["started_at"].notna() | (taken_s > 0)))  # else it never began
    if "run_id" in columns:
        return rows, len(columns["run_id"].parts) > 1
    at = rows["started_at"] if "started_at" in rows else rows["submitted_at"]
    called = rows["name"].fillna("") if "name" in rows else rows["group_key"].fillna("")
    ids = []
    for run_id in called + "/" + at.astype("str"):
        counts[run_id] += 1
        ids.append(f"{run_id} {counts[run_id]}" if counts[run_id] > 1 else run_id)
    return rows.assign(run_id=pd.Series(ids, index=rows.index, dtype="str").where(at.notna())), True


def understand(path: str, sample: pa.Table, params: ReadParams) -> Understanding:
    """What the columns of a table mean, by their names and first values.

    Raises BadInput if a column that is needed or named is missing, or stands there twice, and for dates that may be day
    or month first."""
    names = [name.strip() for name in sample.column_names]
    sample = sample.rename_columns(names)
    is_typed = any(not is_text(field.type) for field in sample.schema)
    known = [name for name in (ALL_COLUMNS if is_typed else FLAT_COLUMNS) if name not in MADE_COLUMNS]
    check_renamed(path, names, params.columns, known, LIST_COLUMNS)
    texts = {name: distinct_texts(sample[name])[:TEXTS_SEEN] for name in names if names.count(name) == 1}
    system = None if params.columns else next((export for export in SYSTEMS if _is_export(export, names)), None)
    if system:
        specs = {ours: meaning_of(spec, names, system.units.get(ours, "")) for ours, spec in system.columns.items()}
        columns = {ours: meaning for ours, meaning in specs.items() if meaning}
    else:
        columns = _by_name(sample, names, texts, params, known)
    features = _features(path, names, params.features, [name for column in columns.values() for name in column.theirs])
    if list(params.features) == [ALL]:
        features = [name for name in features if is_feature(sample.schema.field(name).type)]
    check_once(path, names, [*(name for column in columns.values() for name in column.theirs), *features])
    _check_needed(path, names, columns)
    _check_types(path, sample.schema, columns, features)
    order = date_order(path, {n: texts[n] for ours in TIME_COLUMNS if ours in columns for n in columns[ours].theirs})
    for ours, meaning in columns.items():
        if ours in TIME_COLUMNS:
            columns[ours] = replace(meaning, order=order)
        elif ours in NUMBER_COLUMNS:
            values = [text for name in meaning.theirs for text in texts[name]]
            columns[ours] = replace(
                meaning, has_commas=has_decimal_commas(values), unit=_unit(path, ours, meaning, params)
            )
    _infer_unit(sample, columns, params)
    job = "" if {"name", "group_key"} & set(columns) else PurePosixPath(path).name.partition(".")[0]
    unread = _unread(path, names, columns, features, known)
    return Understanding(columns, features, system, job, [*_lines(sample, columns, system, job, params), *unread])


def _is_export(system: System, names: Collection[str]) -> bool:
    return all(any(name in names for name in has.split("|")) for has in system.has)


def _by_name(
    sample: pa.Table, names: Sequence[str], texts: Mapping[str, list[str]], params: ReadParams, known: Sequence[str]
) -> dict[str, Meaning]:
    """The columns that are called as ours are, those that the user names, and those with another known name."""
    taken = set(params.columns.values())
    columns = {ours: single_column(theirs, is_exact=True) for ours, theirs in params.columns.items()}
    exact = [name for name in names if name in known and name not in params.columns and name not in taken]
    columns |= {name: single_column(name, is_exact=True) for name in exact}
    taken |= set(exact)
    for ours in ALIASES:
        if ours in params.columns or (ours in columns and ours not in ("run_id", "status")):
            continue
        called = list(_candidates(ours, names, taken - {ours}))
        candidates = [one for one in called if _is_plausible(ours, one[0], sample, texts, params)]
        has_clock = candidates and not are_all(DATE_ALONE, texts[candidates[0][0]])
        if ours in TIME_COLUMNS and not has_clock:
            moment = _date_and_clock(names, [name for name, _ in called], texts, columns)
            if moment:
                columns[ours] = moment
                taken |= set(moment.theirs)
                continue
        if ours == "name" and not candidates and "group_key" not in columns:
            kinds = (*KINDS, *TEXTS) if "plan_signature" in columns else (*TEXTS, *KINDS)
            candidates = list(named(names, kinds, taken))
        if ours == "status":
            columns |= _status_columns(candidates, columns)
        elif ours == "run_id" and ours in columns:
            is_repeated = not _is_unique(sample["run_id"])
            other = next((name for name, _ in candidates if name != ours and key_of(name) == "id"), "")
            columns |= {ours: single_column(other)} if is_repeated and other else {}
        elif candidates:
            columns[ours] = single_column(candidates[0][0], unit=candidates[0][1])
        taken |= set(columns[ours].theirs) if ours in columns else set()
    return {ours: columns[ours] for ours in (*known, ERROR) if ours in columns}


def _date_and_clock(
    names: Sequence[str], called: Sequence[str], texts: Mapping[str, list[str]], columns: Mapping[str, Meaning]
) -> Meaning | None:
    """A time whose clock stands in a column of its own, with the column of its date: one that is called alike, else
    that of the times before, else any date. None where the first values show no such pair."""
    clock = next((name for name in called if are_all(CLOCK_ALONE, texts.get(name, []))), None)
    if clock is None:
        return None
    before = [name for meaning in columns.values() if meaning.joint == BLANK for name in meaning.theirs]
    others = [name for name, _ in (*named(names, DAYS, ()), *named_in_words(names, DAYS, NO_MORE, ()))]
    days = [name for name in (*called, *before, *others) if are_all(DATE_ALONE, texts.get(name, []))]
    return Meaning(((days[0],), (clock,)), joint=BLANK) if days else None


def _status_columns(candidates: Sequence[tuple[str, str]], columns: Mapping[str, Meaning]) -> dict[str, Meaning]:
    """What came of a run (conclusion, result) counts before the state that it is in."""
    theirs = [name for name, _ in candidates]
    states = [name for name in theirs if key_of(name) in map(key_of, STATES)]
    outcomes = [name for name in theirs if name not in states]
    if "status" in columns and not outcomes:
        return {}
    if outcomes and states and (is_exit_code(outcomes[0]) or is_flag(outcomes[0])):
        outcomes = []
    used = (*outcomes[:1], *states[:1])
    return {"status": Meaning((used,))} if used else {}


def _dimension(ours: str) -> Dimension | None:
    return dimension_of(ours) if ours in MEASURED else None


def _candidates(ours: str, names: Sequence[str], taken: Collection[str]) -> Iterator[tuple[str, str]]:
    aliases = (key_of(ours), *ALIASES.get(ours, ()))
    yield from named(names, aliases, taken, "s" if ours in TIME_COLUMNS else _dimension(ours))  # begin_ms: since 1970
    beside = NOUNS if ours == "name" else NO_MORE
    yield from named_in_words(names, WORDS.get(ours, ()), beside, taken)
    yield from named(names, LAST.get(ours, ()), taken)


def _is_unique(column: pa.ChunkedArray) -> bool:
    return not pa.types.is_nested(column.type) and len(column.unique()) == len(column)


def _is_plausible(ours: str, name: str, sample: pa.Table, texts: Mapping[str, list[str]], params: ReadParams) -> bool:
    """Whether the first values of a column can be what its name promises."""
    if name not in texts:
        return False
    kind, values = sample.schema.field(name).type, texts[name]
    if ours == "run_id":
        return _is_unique(sample[name])
    if ours == "status":
        if not values:
            return is_exit_code(name) if pa.types.is_integer(kind) else is_flag(name) and pa.types.is_boolean(kind)
        n_known = sum(_status(value, params, [name]) is not None for value in values)
        return (
            n_known == len(values) if is_flag(name) else 2 * n_known >= len(values)
        )  # success: 12 is a number of them
    if pa.types.is_boolean(kind) and ours in (*TIME_COLUMNS, *NUMBER_COLUMNS):  # done: true is no time
        return False
    if is_number(kind) and ours in TIME_COLUMNS and unit_in_name(name, "s"):  # a time, or a time span?
        is_bad = utc_times(plain(sample[name]), "UTC")[1]
        return 2 * int(is_bad.sum()) <= len(is_bad)
    if not is_text(kind) or ours not in (*TIME_COLUMNS, *NUMBER_COLUMNS):
        return True
    if ours in TIME_COLUMNS:
        _, is_bad = utc_times(pa.array([text for text in values if not LOCAL_DATE.match(text)], pa.string()), "UTC")
    else:
        parse = duration_s if _dimension(ours) == "s" else size_bytes
        digits = pd.Series(values, dtype="str")
        digits = digits.str.replace(".", "") if has_decimal_commas(values) else digits
        numbers = pd.to_numeric(digits.str.replace(",", "."), errors="coerce").notna()
        is_bad = np.array(
            [not has_number and parse(text) is None for text, has_number in zip(values, numbers, strict=True)]
        )
    return 2 * int(is_bad.sum()) <= len(values)


def _status(word: str, params: ReadParams, columns: Sequence[str], system: System | None = None) -> Status | None:
    """What a word, or an exit code or a flag in columns that are called so, stands for; None where nobody knows."""
    words = system.words if system else {}
    of_system = next((ours for pattern, ours in words.items() if re.fullmatch(pattern, word.strip())), None)
    if known := status_of(word, params.statuses) or of_system:
        return known
    of_flag = next((ours for column in columns if (ours := status_of_flag(column, word))), None)
    return of_flag or (status_of_exit_code(word) if any(map(is_exit_code, columns)) else None)


def _check_needed(path: str, names: Sequence[str], columns: Collection[str]) -> None:
    missing = [group for group in NEEDED if not any(name in columns for name in group)]
    if any(group in missing for group in NEEDED[2:]):
        lacking = " and no ".join(" or ".join(needed) for needed in missing)
        fix = headless(names) or f"name yours, as in --map {missing[-1][0]}=THEIRS"
        raise BadInput(path, f"no column {lacking} among {quoted(names)}", EXPECTED, fix)
    if not {"runtime_s", "started_at", "wait_s"} & set(columns):
        raise BadInput(path, "ended_at without started_at gives no runtime", EXPECTED, "export one of the two as well")


def _check_types(path: str, schema: pa.Schema, columns: Mapping[str, Meaning], features: Sequence[str]) -> None:
    for ours, meaning in columns.items():
        for theirs in meaning.theirs:
            check_type(path, ours, theirs, schema.field(theirs).type)
    for theirs in features:
        if not is_feature(kind := schema.field(theirs).type):
            raise BadInput(path, f"column '{theirs}' is of type '{kind}'", "text, numbers or times", "leave it out")


def _unit(path: str, ours: str, meaning: Meaning, params: ReadParams) -> str:
    """The unit of a column: as the user says, else as the name says, else our own; empty for numbers without one.

    Raises BadInput for a name that ends in what may be several units."""
    dimension = _dimension(ours)
    if not dimension:
        return ""
    if ours in params.units or meaning.unit:
        return params.units.get(ours, meaning.unit)  # type: ignore[call-overload, no-any-return]
    theirs = meaning.theirs[0]
    if theirs == ours:
        return ""
    try:
        return unit_in_name(theirs, dimension) or ""
    except ValueError as error:
        problem, known = f"the unit of '{theirs}' ({ours}) is not clear: {error}", ", ".join(SPELLINGS[dimension])
        raise BadInput(path, problem, known, f"--unit {ours}=UNIT") from error


def _infer_unit(sample: pa.Table, columns: dict[str, Meaning], params: ReadParams) -> None:
    """The unit of a runtime without one, as the times from start to end of the same rows tell."""
    runtime = columns.get("runtime_s")
    if runtime is None or runtime.unit or runtime.is_exact or not {"started_at", "ended_at"} <= set(columns):
        return
    numbers, _ = amounts(plain(merged(sample, runtime)), None, 1.0, has_commas=runtime.has_commas)
    started, ended = (
        _convert(ours, _column(sample, ours, columns[ours]), params.time_zone, columns[ours])[0]
        for ours in ("started_at", "ended_at")
    )
    unit = unit_of_values(numbers, (ended - started).dt.total_seconds())
    columns["runtime_s"] = replace(runtime, unit="" if unit == "s" else unit)


def _features(path: str, names: Sequence[str], wanted: Sequence[str], taken: Collection[str]) -> list[str]:
    """The columns of the file that are kept as features."""
    if list(wanted) == [ALL]:
        return [name for name in names if name not in taken and not name.startswith(PANDAS_INDEX)]
    for name in wanted:
        if name not in names:
            problem = f"no column '{name}' to keep as a feature"
            raise BadInput(path, problem, f"one of {quoted(names)}", "mend --features")
    return list(dict.fromkeys(wanted))


def _unread(
    path: str, names: Sequence[str], columns: Mapping[str, Meaning], features: Sequence[str], known: Sequence[str]
) -> list[str]:
    """Which columns are left out, in a line; none where all are read."""
    lists = [name for name in names if name in LIST_COLUMNS and name not in known]
    if lists:
        logger.warning("%s: %s left out: lists need Parquet", path, ", ".join(lists))
    used = {*(name for column in columns.values() for name in column.theirs), *features, *lists}
    used |= {name.replace(".0.", ".-1.") for name in used}  # of a list one entry stands for all, else the last
    used |= {name.replace(".-1.", ".0.") for name in names if ".-1." in name}
    unread = [name for name in names if name and name not in used and not name.startswith((PANDAS_INDEX, AROUND))]
    hint = "what is known before a run can help predictions: --features NAME,… or all"
    return [f"not read: {quoted(unread, MOST_UNREAD)} ({hint})"] if unread else []


def _lines(
    sample: pa.Table, columns: Mapping[str, Meaning], system: System | None, job: str, params: ReadParams
) -> list[str]:
    """What was understood that the table does not say in our own words."""
    lines = [f"these are {system.title}"] if system else []
    for ours, meaning in columns.items():
        is_new = not meaning.is_exact or meaning.unit or meaning.order or meaning.has_commas
        if is_new and ours != ERROR:
            lines.append(meaning.in_words(ours, _dimension(ours)))
    if job:
        lines.append(f"no column names a job: all runs are of one job, {job}")
    if "run_id" not in columns:
        lines.append("no column is known as the id of a run (--map run_id=THEIRS): named after name and start")
    if status := columns.get("status"):
        words = [str(word) for word in pc.unique(trimmed(merged(sample, status))).to_pylist() if word is not None]
        statuses = [(word, _status(word, params, status.theirs, system)) for word in words]
        if pairs := [f"{word} as {ours}" for word, ours in statuses if ours and ours != word]:
            lines.append(f"read the words {', '.join(pairs[:MOST_WORDS])}")
    if ERROR in columns:
        lines.append(f"runs with {' or '.join(f'`{name}`' for name in columns[ERROR].theirs)} have failed")
    naive = [ours for ours in TIME_COLUMNS if ours in columns and _is_local(sample, columns[ours])]
    if naive and not params.time_zone and lines:
        lines.append(f"times without a zone ({', '.join(naive)}) are read as UTC; say otherwise with --time-zone")
    return lines


def _is_local(sample: pa.Table, meaning: Meaning) -> bool:
    texts = [text for name in meaning.theirs for text in distinct_texts(sample[name])[:1]]
    return bool(meaning.order) or any(
        "-" in text and not re.search(r"(Z|UTC|[+-]\d\d:?(\d\d)?)$", text) for text in texts
    )


KEYS = {"skus": ("sku",), "vertices": ("vertex",), "skyline": ("at_s", "tokens")}  # fields that have to be there
LARGEST = 2**31 - 1  # of a 32-bit number; larger ones are missing
MAX_TYPE_CHARS = 100  # of a type in a message
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6}  # nanoseconds do not reach so far

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?")  # no counter such as 007, no hash such as 12e45


# What a column may hold beside texts and numbers, and how that is said; the first columns that fit
FITTING: tuple[tuple[Collection[str], tuple[Callable[[pa.DataType], bool], ...], str], ...] = (
    (("status",), (pa.types.is_boolean,), "text"),
    ((*TEXT_COLUMNS, ERROR), (), "text"),
    (TIME_COLUMNS, (pa.types.is_timestamp, pa.types.is_date), "a timestamp, ISO text or epoch seconds"),
    (NUMBER_COLUMNS, (pa.types.is_duration,), "numbers"),
    (ALL_COLUMNS, (pa.types.is_boolean,), "true or false"),
)


def check_type(path: str, ours: str, theirs: str, kind: pa.DataType) -> None:
    """Raise BadInput if a column of this type cannot hold what the column of ours means."""
    if ours in LIST_COLUMNS:
        check_list_type(path, ours, theirs, kind)
        return
    kind = _value_type(kind)
    more, expected = next((more, expected) for columns, more, expected in FITTING if ours in columns)
    if not any(is_fit(kind) for is_fit in (is_text, pa.types.is_null, is_number, *more)):
        raise BadInput(path, f"column '{theirs}' ({ours}) is of type '{kind}'", expected, "convert it")


def is_feature(kind: pa.DataType) -> bool:
    """Whether a column of this type can be kept as a feature."""
    kind = _value_type(kind)
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    return not (pa.types.is_nested(kind) or is_binary)


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _column(table: pa.Table, ours: str, meaning: Meaning) -> pa.ChunkedArray:
    column = merged(table, meaning)
    if meaning.unit == BINARY and is_text(column.type):
        column = pc.replace_substring_regex(column, r"([KMGTP])B$", r"\1iB")
    if meaning.unit == HHMMSS:
        values = column.cast(pa.string()).to_pylist()
        column = pa.chunked_array([pa.array([text and _with_colons(text) for text in values], pa.string())])
    if ours in TIME_COLUMNS and is_text(column.type):
        if meaning.order:
            column = iso_dates(column, meaning.order)
        if not meaning.is_exact:
            column = pc.if_else(pc.is_in(column, pa.array(NO_TIMES)), None, column)
    return column


def _with_colons(text: str) -> str:
    """00:01:02 of 102, and 2026-01-31T00:01:02 of 20260131/102."""
    day, _, clock = text.rpartition("/")
    clock = clock.zfill(6)
    return f"{day and f'{day[:4]}-{day[4:6]}-{day[6:]}T'}{clock[:-4]}:{clock[-4:-2]}:{clock[-2:]}"


def to_runs(table: pa.Table, understood: Understanding, params: ReadParams) -> tuple[pd.DataFrame, list[str]]:
    """The table in our types, and for each row what could not be read (empty: nothing)."""
    faults = np.full(table.num_rows, "", dtype=object)
    converted: dict[str, pd.Series] = {}
    for name, meaning in reversed(understood.columns.items()):  # of several faults the first counts
        column = _column(table, name, meaning)
        if name == "status":
            words = _texts(plain(column))
            codes, distinct = pd.factorize(words)
            known = [_status(word, params, meaning.theirs, understood.system) for word in distinct]
            converted[name] = pd.Series(pd.array([*known, None], dtype="str").take(codes))
            is_bad = (converted[name].isna() & words.notna()).to_numpy()
            faults[is_bad] = [unknown_status(word) for word in words[is_bad]]
            continue
        converted[name], is_bad = _convert(name, column, params.time_zone, meaning)
        if is_bad.any():
            first = str(column[int(np.flatnonzero(is_bad)[0])])[:SHOWN_CHARS]  # stands for all of them
            faults[is_bad] = (
                f"{name} is not {'a number' if name in NUMBER_COLUMNS else 'true or false'}, such as '{first}'"
            )
            if name in TIME_COLUMNS:
                zone = f" that clocks of {params.time_zone} have shown" if params.time_zone else ""
                faults[is_bad] = f"{name} is not a time{zone}; expected ISO text or epoch seconds"
    rows = pd.DataFrame({name: converted[name] for name in understood.columns})
    kept = {name: table[name] for name in understood.features}
    return rows.assign(features=_feature_texts(kept)) if kept else rows, faults.tolist()


def _feature_texts(columns: Mapping[str, pa.ChunkedArray]) -> pd.Series:
    """A JSON object for each row, of the columns that have a value there; missing where none has."""
    values = [_feature(column) for column in columns.values()]
    rows = [
        {name: value for name, value in zip(columns, row, strict=True) if value is not None}
        for row in zip(*values, strict=True)
    ]
    return pd.Series([json.dumps(features, ensure_ascii=False) if features else None for features in rows], dtype="str")


def _feature(column: pa.ChunkedArray) -> list[object]:
    """Numbers, also those written as text, and true or false as they are; all else as text, times in ISO 8601."""
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return list(column.to_pylist())
    if is_number(kind):
        numbers = column.cast(pa.float64()).to_pylist()
        return [value if value is not None and isfinite(value) else None for value in numbers]
    if pa.types.is_duration(kind):
        return list(_seconds(column).to_pylist())
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        column = column.cast(pa.string())
    codes, texts = pd.factorize(trimmed(column.cast(pa.string())).to_pandas())
    parsed = [json.loads(text) if NUMBER.fullmatch(text) else text for text in texts]
    return [parsed[code] if code >= 0 else None for code in codes]


def _convert(name: str, column: pa.ChunkedArray | pa.Array, zone: str, meaning: Meaning) -> tuple[pd.Series, Any]:
    """A column in our type, and which of its values could not be read (those are missing in it): (n,) each."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    all_good = np.zeros(len(column), dtype=bool)
    if name in LIST_COLUMNS:
        return pd.Series(pd.arrays.ArrowExtensionArray(to_lists(name, column, zone))), all_good
    if name in (*TEXT_COLUMNS, ERROR):
        return (pd.Series(trimmed(column).to_pandas(), dtype="str") if name == ERROR else _texts(column)), all_good
    column = plain(column)
    if name in TIME_COLUMNS:
        is_time = pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)
        times, is_bad = utc_times(in_microseconds(column) if is_time else column, zone)
        return pd.Series(times), is_bad
    if name not in NUMBER_COLUMNS:
        parsed = flags(column)
        return pd.Series(parsed.values == True), parsed.is_bad  # noqa: E712, PD011 - None is no flag
    if pa.types.is_duration(column.type):
        return _seconds(column).to_pandas().astype("float64"), all_good
    dimension = _dimension(name)
    factor = (factor_of(meaning.unit, dimension) if dimension and meaning.unit else None) or 1.0
    return amounts(column, dimension, factor, has_commas=meaning.has_commas)


def _seconds(durations: Any) -> Any:
    return pc.divide(durations.cast(pa.duration("us")).cast(pa.int64()).cast(pa.float64()), 1e6)


def _texts(column: pa.ChunkedArray | pa.Array) -> pd.Series:
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    column = column.cast(_value_type(column.type))
    if is_text(column.type) or pa.types.is_null(column.type):
        column = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
    if pa.types.is_floating(column.type):  # 17.0 is 17: a missing id makes a column of integers float
        whole = pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), float(2**53)))
        integers = pc.if_else(whole, column, None).cast(pa.int64()).cast(pa.large_string())
        column = pc.if_else(whole, integers, pc.if_else(pc.is_nan(column), None, column).cast(pa.large_string()))
    column = column.cast(pa.large_string())
    return pd.Series(pc.if_else(pc.equal(column, ""), None, column).to_pandas(), dtype="str")


def check_list_type(path: str, ours: str, theirs: str, kind: pa.DataType) -> None:
    """Raise BadInput unless a column is a list of structs whose fields can hold what ours mean.

    Fields that are not ours are ignored; of ours those in KEYS are needed."""
    wanted = ALL_COLUMNS[ours][0].value_type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    inner = kind.value_type if is_list else None
    if pa.types.is_null(kind) or (inner is not None and pa.types.is_null(inner)):
        return
    if inner is None or not pa.types.is_struct(inner):
        problem = f"column '{theirs}' ({ours}) is of type '{_cut(kind)}'"
    else:
        names = [field.name for field in inner]
        faults = [f"the entries of '{theirs}' ({ours}) have no field '{key}'" for key in KEYS[ours] if key not in names]
        for field in wanted:
            if names.count(field.name) > 1:
                faults.append(f"field '{field.name}' stands twice in '{theirs}'")
            elif field.name in names and not _fits(their_type := inner.field(field.name).type, field.type):
                faults.append(f"field '{field.name}' of '{theirs}' is of type '{_cut(their_type)}'")
        problem = next(iter(faults), "")
    if problem:
        fields = ", ".join(f"{field.name} {field.type}" for field in wanted)
        raise BadInput(path, problem, f"a list of structs ({fields})", "convert it")


def to_lists(ours: str, column: pa.Array, zone: str) -> pa.ListArray:
    """The lists in our type: fields in our order, absent ones missing, NaN missing, times in UTC.

    column: of a type that check_list_type lets pass. zone: of times that name none, UTC if empty."""
    wanted = ALL_COLUMNS[ours][0]
    if pa.types.is_null(column.type) or pa.types.is_null(column.type.value_type):
        return pa.nulls(len(column), wanted)
    if not pa.types.is_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    entries = pc.list_flatten(column)
    entry_type = wanted.value_type
    fields = [_field(entries, field, zone) for field in entry_type]
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    return pa.ListArray.from_arrays(
        offsets, pa.StructArray.from_arrays(fields, fields=list(entry_type)), type=wanted, mask=pc.is_null(column)
    )


def _field(entries: pa.StructArray, wanted: pa.Field, zone: str) -> pa.Array:
    if entries.type.get_field_index(wanted.name) < 0:
        return pa.nulls(len(entries), wanted.type)
    values = pc.struct_field(entries, wanted.name)
    values = values.cast(_value_type(values.type))
    if pa.types.is_floating(wanted.type):
        values = values.cast(wanted.type, safe=False)
        return pc.if_else(pc.is_nan(values), None, values)
    if pa.types.is_timestamp(wanted.type) and pa.types.is_timestamp(values.type):
        values = in_microseconds(values)
        if values.type.tz is None and zone and zone != "UTC":  # of the hour that occurs twice the first, as elsewhere
            values = pc.assume_timezone(values, zone, ambiguous="earliest", nonexistent="latest")
        return values.cast(pa.timestamp("us", "UTC")).cast(TIMESTAMP) if values.type.tz else values
    if pa.types.is_integer(wanted.type) and pa.types.is_integer(values.type):
        values = pc.if_else(pc.less_equal(pc.abs(values.cast(pa.float64(), safe=False)), LARGEST), values, None)
    return values.cast(wanted.type, safe=False)


def _fits(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a field of this type can hold what ours means: texts, times, whole numbers or numbers."""
    kind = _value_type(kind)
    if pa.types.is_null(kind):
        return True
    if pa.types.is_string(wanted):
        return is_text(kind)
    if pa.types.is_timestamp(wanted):
        return bool(pa.types.is_timestamp(kind))
    return bool(pa.types.is_integer(kind)) if pa.types.is_integer(wanted) else is_number(kind)


def _cut(kind: pa.DataType) -> str:
    text = str(kind).replace("\n", " ")
    return text if len(text) <= MAX_TYPE_CHARS else f"{text[:MAX_TYPE_CHARS]}…"


def in_microseconds(times: pa.Array) -> pa.TimestampArray:
    """Dates and times of any unit in microseconds, their zone kept.

    As with epoch seconds, those after the year 9999, and as far before 1970, are cut there, to be refused later."""
    if pa.types.is_date(times.type):
        times = times.cast(pa.timestamp("s" if pa.types.is_date32(times.type) else "ms"))
    if times.type.unit in PER_SECOND:
        far = pa.scalar(LAST_S * PER_SECOND[times.type.unit], pa.int64())
        whole = times.cast(pa.int64())
        cut = pc.max_element_wise(pc.min_element_wise(whole, far), pc.negate(far))
        times = pc.if_else(pc.is_valid(whole), cut, None).cast(times.type)
    return times.cast(pa.timestamp("us", times.type.tz), safe=False)
