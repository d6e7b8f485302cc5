"""A Prometheus server: every series of a selector over its HTTP range API, one run for each instance; or a file that
holds such an answer (of query_range), whose step is the spacing of most of its samples.

The address may carry the selectors: http://127.0.0.1:9090?match[]={job="node"}. Counters, told by the server's
metadata and where it says nothing by `_total`, become rates; all other series are gauges. Labels are folded into
the name: node_cpu_seconds.cpu_0.mode_user. Times without a sample of the instance are missing samples. Native
histograms are listed and left out."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.errors import BadInput, quoted, reason_of
from tasks.intake.aliases import duration_s
from tasks.intake.cells import time_of
from tasks.intake.files import json_of, no_refusals, open_checked
from tasks.intake.http_server import HttpServer, Patience, Words
from tasks.intake.readers import REMOTE
from tasks.workloads.params import ReadParams
from tasks.workloads.prepared import FileRun, Reading, row_per_sample
from tasks.workloads.readers.tables import start_and_offsets
from tasks.workloads.telemetry import Counter, FloatArray, spelled

if TYPE_CHECKING:
    import httpx

EXPECTED = "the HTTP API of a Prometheus server"
FIX = "is the address right? A local server's is http://127.0.0.1:9090"
WORDS = Words("http://host:9090", EXPECTED, FIX, FIX, "a shorter one", "raise read.prometheus.step_s, or ask for less")
POSTED = ("query_range", "series")  # their questions may be longer than an address


class PrometheusApi(HttpServer):
    """One server's API, for as long as it is open. matches: the selectors in its address."""

    def __init__(self, url: str, patience: Patience, transport: "httpx.BaseTransport | None" = None) -> None:
        """Raises BadInput for an address that is none."""
        super().__init__(url, WORDS, patience, transport=transport)
        self.matches = self.asked_for.get("match[]", [])

    def data(self, route: str, question: Mapping[str, Any]) -> Any:
        """The data that the server answers with. Raises BadInput if there is none to be had."""
        is_posted = route.endswith(POSTED)
        payload = {"data": dict(question)} if is_posted else {"params": dict(question)}
        response = self.ask("POST" if is_posted else "GET", f"api/v1/{route}", **payload)
        if response.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            problem = f"the server refuses to answer ({response.status})"
            raise BadInput(self.shown, problem, EXPECTED, "put user:password@ into the address")
        try:
            answer = json_of(response.body)
        except ValueError as error:
            no_json = f"no JSON ({response.status}: {response.excerpt})"
            problem = "a web page instead of JSON" if response.is_page else no_json
            raise BadInput(self.shown, problem, EXPECTED, FIX) from error
        if not isinstance(answer, dict) or answer.get("status") != "success" or "data" not in answer:
            reason = answer.get("error", response.status) if isinstance(answer, dict) else "no object"
            fix = "shorten the range or mend the selector"
            raise BadInput(self.shown, f"the server refuses the question ({quoted(str(reason))})", EXPECTED, fix)
        return answer["data"]


PATIENCE = Patience(timeout_s=30, tries=3, backoff_s=1)
MOST_POINTS = 500_000  # values asked for at a time
MAX_STEPS = 10_000  # the server gives at most 11,000 points a series at a time
DEFAULT_STEP_S = 15.0
NAME = "__name__"
LEAST_TIMES = 2
MOST_CELLS = 100_000_000  # values of a file, those that are missing among them
EDGE = 1e-6  # of a step, against rounding where a range ends
COUNTING = (".*_total", ".*_bucket", ".*_count", ".*_sum")
Labels = dict[str, str]
Series = dict[tuple[tuple[str, str], ...], FloatArray]  # by labels: a value for each step
RANGE = re.compile(rb'"resultType"\s*:\s*"matrix"')


@dataclass(frozen=True)
class PrometheusReader:
    """Reads from a server; transport, patience and the values asked for at a time are for tests."""

    transport: "httpx.BaseTransport | None" = None
    patience: Patience = PATIENCE
    most_points: int = MOST_POINTS

    def sniff(self, head: bytes, path: str) -> bool:
        """By the address, or by what an answer says of itself."""
        return bool(RANGE.search(head)) or (not head and path.startswith(REMOTE))

    def read(self, path: str, params: ReadParams) -> Reading:
        """See Reader.read. Raises BadInput for a server that does not answer and for a selector without series."""
        options = params.prometheus
        if not path.startswith(REMOTE):
            return _of_file(path, params)
        with PrometheusApi(path, self.patience, self.transport) as api:
            matches = options.match or api.matches
            if not matches:
                raise BadInput(api.shown, "no selector", 'match[], such as {job="node"}', "--match '{job=\"node\"}'")
            end_s = _moment(api.shown, options.end) if options.end else time.time()
            start_s = _moment(api.shown, options.start) if options.start else end_s - options.last_s
            if start_s >= end_s:
                raise BadInput(api.shown, "the range ends before it starts", "start before end", "mend --start, --end")
            try:
                step_s = options.step_s or _scrape_interval(api)
                first_s = start_s - step_s  # rates of the first sample need the one before
                n_steps = int(np.floor((end_s - first_s) / step_s + EDGE)) + 1
                n_series = _count_series(api, matches, first_s, end_s, options.max_series)
                types = {
                    name: str(described[0].get("type", ""))
                    for name, described in api.data("metadata", {}).items()
                    if described
                }
                series: Series = {}
                histograms: set[str] = set()
                size = min(max(2, self.most_points // n_series), MAX_STEPS)
                for match, at in product(matches, range(0, n_steps, size)):
                    start, end = (first_s + step * step_s for step in (at, min(at + size, n_steps) - 1))
                    span = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step_s:g}"}
                    answer = api.data("query_range", {"query": match} | span)
                    histograms |= _add(answer.get("result", []), first_s, step_s, n_steps, series)
                runs = _runs(series, types, options.run_by, start_s, step_s, histograms)
            except (AttributeError, TypeError, ValueError, LookupError, OverflowError) as error:
                problem = f"an answer of another shape ({reason_of(error)})"
                raise BadInput(api.shown, problem, EXPECTED, "is it Prometheus?") from error
        if not runs:
            raise BadInput(api.shown, "no sample in this range", EXPECTED, "ask for another range or selector")
        return Reading(runs, no_refusals())


def _of_file(path: str, params: ReadParams) -> Reading:
    """Each series counts from its first sample, from which its rates are: as it asks of a server."""
    expected = "what a Prometheus server answers to query_range"
    with open_checked(path, params.limits) as file:
        body = file.read()
    try:
        result = json_of(body)["data"]["result"]
        each = [np.array([float(at) for at, _ in sampled["values"]]) for sampled in result if sampled.get("values")]
        times = np.unique(np.concatenate(each)) if each else np.zeros(0)
        if len(times) < LEAST_TIMES:
            raise BadInput(path, f"samples at {len(times)} times", expected, "ask for a longer range")
        step_s = params.prometheus.step_s or float(np.median(np.concatenate([np.diff(instants) for instants in each])))
        n_steps = int(np.rint((times[-1] - times[0]) / step_s)) + 1
        if n_steps * len(each) > MOST_CELLS:
            raise BadInput(
                path, f"{n_steps:,} steps of {len(each):,} series", f"at most {MOST_CELLS:,} values", "cut it"
            )
        series: Series = {}
        histograms = _add(result, times[0], step_s, n_steps, series)
        runs = _runs(series, {}, params.prometheus.run_by, float(times[0] + step_s), step_s, histograms)
    except (AttributeError, TypeError, ValueError, LookupError, OverflowError, ZeroDivisionError) as error:
        raise BadInput(
            path, f"an answer of another shape ({reason_of(error)})", expected, "is it Prometheus?"
        ) from error
    return Reading(runs, no_refusals())


def _add(result: Any, first_s: float, step_s: float, n_steps: int, series: Series) -> set[str]:
    """Put the samples of an answer into the steps of their series; returns the names of native histograms."""
    histograms = set()
    for sampled in result:
        labels = tuple(sorted(sampled.get("metric", {}).items()))
        if "values" not in sampled:
            histograms.add(dict(labels).get(NAME, "?"))
            continue
        pairs = [(float(at), float(text)) for at, text in sampled["values"]]
        times, given = np.array(pairs).reshape(-1, 2).T
        steps = np.rint((times - first_s) / step_s).astype(int)
        is_in = (steps >= 0) & (steps < n_steps)
        values = series.setdefault(labels, np.full(n_steps, np.nan))
        values[steps[is_in]] = np.where(np.isfinite(given), given, np.nan)[is_in]
    return histograms


def _runs(
    series: Series, types: dict[str, str], run_by: str, start_s: float, step_s: float, histograms: set[str]
) -> list[FileRun]:
    """One run for each value of the label; the first step lies before the start."""
    groups: dict[str, list[tuple[Labels, FloatArray]]] = {}
    for key, values in sorted(series.items(), key=lambda item: item[0]):
        groups.setdefault(dict(key).get(run_by, ""), []).append((dict(key), values))
    first, _ = start_and_offsets(np.array([start_s]))
    runs = []
    for group, members in sorted(groups.items()):
        counters: dict[str, Counter] = {}
        hidden = {NAME, run_by} | ({"job"} if len({labels.get("job", "") for labels, _ in members}) == 1 else set())
        for labels, _ in members:
            name = _folded(labels, hidden)
            name = name if name not in counters else f"{name}.{len(counters)}"
            counters[name] = Counter(name, "", "software")
        table = np.column_stack([values for _, values in members])
        is_total = np.array([_is_total(labels.get(NAME, ""), types) for labels, _ in members], dtype=bool)
        table[0, ~is_total] = np.nan
        rows = np.flatnonzero(~np.isnan(table).all(axis=1))
        run = row_per_sample(
            tuple(counters.values()),
            np.asarray((rows - 1) * step_s, dtype=np.float64),
            table[rows],
            places=rows.astype(np.int64) + 1,
            is_total=is_total,
            part=f"{group or 'all'} {datetime.fromtimestamp(start_s, UTC):%Y-%m-%dT%H:%M:%SZ}",
            is_id=True,
            labels={"machine": group} if group else {},
            started_at=first,
            refused=tuple(f"{name}: a native histogram" for name in sorted(histograms)),
        )
        runs.append(run)
    return runs


def _is_total(metric: str, types: dict[str, str]) -> bool:
    kind = types.get(metric)
    if kind is None:  # parts of histograms and summaries are listed under the name of the whole
        base = re.sub(r"_(total|bucket|count|sum)$", "", metric)
        kind = types.get(base, "unknown")
        if kind == "summary" and base == metric:
            return False
    if kind in ("counter", "histogram", "summary"):
        return kind == "counter" or any(re.fullmatch(ending, metric) for ending in COUNTING)
    return kind == "unknown" and metric.endswith("_total")


def _folded(labels: Labels, hidden: set[str]) -> str:
    label_parts = [
        f"{key}_{value.replace('/', '_').strip('_') or 'root'}" for key, value in labels.items() if key not in hidden
    ]
    return ".".join(spelled(part).replace(".", "_") for part in (labels.get(NAME, "value"), *label_parts))


def _count_series(api: PrometheusApi, matches: list[str], first_s: float, end_s: float, most: int) -> int:
    n_series = len(api.data("series", {"match[]": matches, "start": first_s, "end": end_s}))
    if not n_series:
        raise BadInput(api.shown, f"no series for {', '.join(matches)}", EXPECTED, "mend the selector or range")
    if n_series > most:
        fix = "narrow the selector, or raise read.prometheus.max_series"
        raise BadInput(api.shown, f"{n_series:,} series", f"at most {most:,}", fix)
    return n_series


def _scrape_interval(api: PrometheusApi) -> float:
    """The shortest scrape interval of the targets that are up; 15 s where the server does not say."""
    targets = api.data("targets", {"state": "active"}).get("activeTargets", [])
    intervals_s = [duration_s(str(target.get("scrapeInterval", ""))) for target in targets]
    return min([seconds for seconds in intervals_s if seconds], default=DEFAULT_STEP_S)


def _moment(where: str, text: str) -> float:
    if (moment := time_of(text)) is None:
        raise BadInput(where, f"{text!r} is no time", "an ISO time or Unix seconds", "mend --start, --end")
    return moment.replace(tzinfo=UTC).timestamp()
