"""Spark event logs: JSON lines, plain, rolled and packed. One run is one application.

An application is what a recurring batch job starts; its SQL executions, jobs and stages are parts of it. A server
that runs for weeks (Thrift server, notebook) is one long run. A file may hold several applications, one after the
other. What we decide:

- Status: running without an end; then failed if the exit code is not 0 or the last job or SQL execution failed,
  cancelled if that job was cancelled, else completed.
- A token is a core held by a task (spark.task.cpus); used_cpus is their mean over the run.
  One whose end is missing is free at the end of its stage, at the latest of the run. Tasks at impossible times are
  refused.
- input_bytes: what successful tasks read; read_bytes: of all tasks, with shuffle; temp_bytes: all spills, summed.
- A vertex is a stage attempt on a host.
- A rolled log that Spark compacted lacks events: sums are then too small, and a warning says so."""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.spark_application import Application
from tasks.jobs.readers.spark_events import APP_START, BEFORE_START, LOG_START, parse_event, take_event
from tasks.jobs.readers.spark_files import has_event_log_name, is_compacted, is_rolled, read_parts
from tasks.jobs.readers.spark_rows import application_row
from tasks.jobs.readers.spark_tokens import MS
from tasks.jobs.vetting import vet_runs
from tasks.reading import Chunk, Lines, all_refusals, refusals

logger = logging.getLogger(__name__)

CHUNK_RUNS, CHUNK_REFUSED = 1000, 10_000
FIRST_EVENT = re.compile(rb'(\xef\xbb\xbf)?\s*\{\s*"Event"\s*:')
EXPECTED = "an event log of Spark from its first event on"


@dataclass(frozen=True)
class SparkReader:
    """Reads event logs of Spark 2.3 and later."""

    name: str = "spark"
    version: int = 2
    ids_hold_names: bool = False
    title: str = "Spark event logs, also rolled (eventlog_v2_…) and packed"
    endings: tuple[str, ...] = ("eventlog", "eventlog.gz", "eventlog.zstd", "eventlog.lz4", "eventlog.snappy")

    def sniff(self, head: bytes, path: str) -> bool:
        """By its name where Spark gave it, else by a first line that is an event."""
        return FIRST_EVENT.match(head) is not None or (not head and has_event_log_name(path))

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """Chunks of some 1,000 applications. Raises BadInput for a file without any start of an application."""
        now = datetime.now(UTC).replace(tzinfo=None)
        if is_rolled(path) and is_compacted(path):
            logger.warning("%s: Spark has compacted this log; sums over its tasks are too small", path)
        ended: list[Application] = []
        refused: list[pd.DataFrame] = []
        latest_ms = (now.replace(tzinfo=UTC).timestamp() + params.future_slack_s) * MS
        reader, n_runs, n_lines = _Applications(latest_ms), 0, 0
        for lines in read_parts(path, params.limits):
            refused += [lines.refused, reader.take(lines)]
            n_lines += sum(not line.isspace() for line in lines.lines if line) + len(lines.refused)
            ended += reader.finished()
            n_runs += sum(app.id is not None for app in ended)
            if len(ended) >= CHUNK_RUNS or sum(map(len, refused)) >= CHUNK_REFUSED:
                yield _chunk(ended, refused, params, now)
                ended, refused = [], []
        ended += reader.last()
        if not reader.has_refused_start:  # else the refused line says what is wrong
            _check_found(path, n_lines, n_runs + sum(app.id is not None for app in ended))
        yield _chunk(ended, refused, params, now)


class _Applications:
    """The application that the lines are about, and those before it that have not been asked for yet."""

    def __init__(self, latest_ms: float) -> None:
        self.latest_ms, self.has_refused_start = latest_ms, False
        self.current: Application | None = None
        self.done: list[Application] = []

    def take(self, lines: Lines) -> pd.DataFrame:
        """Add some lines; returns those that were refused."""
        bad: list[tuple[int, str, str]] = []
        for place, line in zip(lines.places, lines.lines, strict=True):
            if not line or line.isspace():
                continue
            try:
                self._take(place, line)
            except ValueError as error:
                bad.append((place, str(error), line))
                self.has_refused_start |= APP_START in line
        return refusals([place for place, _, _ in bad], [why for _, why, _ in bad], [raw for _, _, raw in bad])

    def _take(self, place: int, line: str) -> None:
        parsed = parse_event(line)
        if parsed is None:
            return
        name, event = parsed
        if self.current is None or self._begins_another(name, self.current):
            self.done += [self.current] if self.current else []
            self.current = Application(place, self.latest_ms)
        if name != LOG_START:
            take_event(self.current, name, event)

    def _begins_another(self, name: str, current: Application) -> bool:
        """Logs that were put together may lack the first line of each."""
        has_ended = current.ended_ms is not None
        return (
            name == LOG_START or (name == APP_START and current.id is not None) or (has_ended and name in BEFORE_START)
        )

    def finished(self) -> list[Application]:
        """The applications that are complete, once."""
        done, self.done = self.done, []
        return done

    def last(self) -> list[Application]:
        """The application that the file ends with, and all before it."""
        done = [*self.finished(), *([self.current] if self.current else [])]
        self.current = None
        return done


def _check_found(path: str, n_lines: int, n_runs: int) -> None:
    if n_runs:
        return
    if not n_lines:
        raise BadInput(path, "only blank lines", EXPECTED, "export it again")
    raise BadInput(
        path,
        "no SparkListenerApplicationStart in it",
        EXPECTED,
        "of a rolled log name the whole folder eventlog_v2_<application>",
    )


def _chunk(apps: list[Application], refused: list[pd.DataFrame], params: ReadParams, now: datetime) -> Chunk:
    outrun = [app.place for app in apps if app.id is not None and app.outruns_its_end]
    known = [app for app in apps if app.id is not None and not app.outruns_its_end]
    nameless = [app.place for app in apps if app.id is None]
    frame = pd.DataFrame([application_row(app) for app in known])
    why = "a log without a start of an application; expected a SparkListenerApplicationStart"
    late = "a task ends over a minute after its application; check the times"
    places, reasons = nameless + outrun, [why] * len(nameless) + [late] * len(outrun)
    told = refusals(places, reasons, [""] * len(places))
    if frame.empty:
        vetted = vet_runs(pd.DataFrame({"place": pd.Series([], dtype="int64")}), params, now)
    else:
        vetted = vet_runs(frame, params, now)
    left_out = sum(app.n_left_out > 0 for app in known)
    if left_out:
        logger.warning("%d applications have too many stages and hosts: some vertices are left out", left_out)
    return Chunk(vetted.rows, all_refusals([*refused, told, vetted.refused]), {})
