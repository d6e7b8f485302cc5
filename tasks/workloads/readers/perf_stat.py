"""`perf stat -a -I 1000 -x,` (or -x';', or -j), also by processor (-A) and by control group (-G).

perf has scaled the counts of multiplexed events already; they become rates per second of their interval. A count that
was measured in less than min_running_pct of its interval is missing, so is `<not counted>`. Lines of events that the
machine lacks (`<not supported>`) are refused one by one, and so is a last interval that is cut short. Counts of
several processors are added up (all of them must be there), or kept apart (per_cpu: each). With one control group its
counters are called own.perf.…; with several, each is named after its group."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.reading import all_refusals, read_lines, refusals
from tasks.tally import CUT_OFF, UNSUPPORTED_EVENT
from tasks.workloads.readers.long_rows import side_by_side
from tasks.workloads.readers.perf_lines import TIME, Count, parse_csv, parse_json, separator_of
from tasks.workloads.readers.perf_names import counter_of
from tasks.workloads.reading_params import PerfParams, ReadParams
from tasks.workloads.sampled import Reading, Sampled

STARTED = "# started on "
STARTED_FORMAT = "%a %b %d %H:%M:%S %Y"
JSON_LINE = re.compile(rb'^\{"interval" ?:', re.MULTILINE)
WHOLE_SHARE = 0.9  # of the usual interval: a shorter last one is cut off


@dataclass(frozen=True)
class Recording:
    """The counts between one start and the next."""

    started_at: datetime | None
    places: list[int]
    counts: list[Count]


@dataclass(frozen=True)
class PerfStatReader:
    """Reads what perf stat prints at intervals."""

    name: str = "perf"
    version: int = 1
    title: str = "perf stat -I 1000 -x, (or -j)"
    endings: tuple[str, ...] = (".perf", ".perf.csv", ".perf.json")

    def sniff(self, head: bytes, path: str) -> bool:  # noqa: ARG002
        """The line with the start, or lines that begin with a time in nanoseconds."""
        text = head.decode("utf-8", "replace")
        is_started = text.lstrip().startswith(STARTED)
        return is_started or any(TIME.match(line) for line in text.splitlines()[:3]) or bool(JSON_LINE.search(head))

    def read(self, path: str, params: ReadParams) -> Reading:
        """See Reader.read. Raises BadInput for output without intervals."""
        recordings, refused = _recordings(path, params)
        if not any(one.counts for one in recordings):
            raise BadInput(
                path, "no interval in it", "the output of perf stat -I 1000 -x,", "record with -I; -x or -j as well"
            )
        runs: list[Sampled] = []
        for number, one in enumerate([one for one in recordings if one.counts], 1):
            run, bad = _run(one, params.perf, f"{number}" if len(recordings) > 1 else "")
            runs += [run] if run else []
            refused.append(bad)
        return Reading(runs, all_refusals(refused))


def _recordings(path: str, params: ReadParams) -> tuple[list[Recording], list[pd.DataFrame]]:
    recordings, refused, separator = [Recording(None, [], [])], [], ""
    for block in read_lines(path, params.limits):
        refused.append(block.refused)
        bad: list[tuple[int, str, str]] = []
        separator = separator or separator_of(block.lines)
        for place, line in zip(block.places, block.lines, strict=True):
            if line.startswith(STARTED):
                recordings.append(Recording(_started(line, params.time_zone), [], []))
            elif line.strip() and not line.startswith("#"):
                found = parse_json(line) if line.startswith("{") else parse_csv(line, separator or ",")
                if isinstance(found, str):
                    bad.append((place, found, line))
                    continue
                last = recordings[-1]
                if last.counts and found.time_s < last.counts[-1].time_s:
                    last = Recording(None, [], [])
                    recordings.append(last)
                last.places.append(place)
                last.counts.append(found)
        refused.append(refusals([b[0] for b in bad], [b[1] for b in bad], [b[2] for b in bad]))
    return [one for one in recordings if one.counts], refused


def _started(line: str, zone: str) -> datetime | None:
    try:
        local = datetime.strptime(line.removeprefix(STARTED).strip(), STARTED_FORMAT)
    except ValueError:
        return None
    return local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).replace(tzinfo=None)


def _run(recording: Recording, params: PerfParams, part: str) -> tuple[Sampled | None, pd.DataFrame]:
    lines = pd.DataFrame(recording.counts, columns=Count._fields).assign(place=recording.places)
    lines["value"] = lines["value"].astype(float)
    reasons = _faults(lines)
    is_bad = (reasons != "").to_numpy()
    bad = lines[is_bad]
    refused = refusals(bad["place"], reasons[is_bad].to_list(), bad["event"])
    lines = lines[~is_bad]
    if lines.empty:
        return None, refused
    unsupported = sorted(set(bad.loc[~bad["is_supported"], "event"]) - set(lines["event"]))
    return _sampled(recording, lines, params, part, [f"{event}: {UNSUPPORTED_EVENT}" for event in unsupported]), refused


def _faults(lines: pd.DataFrame) -> pd.Series:
    """Why each line cannot be used; empty: it can."""
    times = np.unique(lines["time_s"])
    lengths = np.diff(times, prepend=0.0)
    is_short = len(times) > 1 and lengths[-1] < WHOLE_SHARE * np.median(lengths[:-1])
    keys = ["time_s", "cpu", "group", "event"]
    n_lines = lines.groupby("time_s")["event"].size()
    is_cut = len(n_lines) > 1 and n_lines.iloc[-1] < n_lines.iloc[:-1].min()
    reasons = pd.Series("", index=lines.index)
    reasons[lines.duplicated(keys)] = "the event stands twice in its interval; the first counts"
    if is_short or is_cut:
        told = "is shorter than the others" if is_short else "lacks events of the others"
        reasons[lines["time_s"] == times[-1]] = f"the last interval {told}: {CUT_OFF}"
    reasons[~lines["is_supported"]] = UNSUPPORTED_EVENT
    return reasons


def _sampled(recording: Recording, lines: pd.DataFrame, params: PerfParams, part: str, refused: list[str]) -> Sampled:
    times = np.unique(lines["time_s"])
    length_s = dict(zip(times.tolist(), np.diff(times, prepend=0.0).tolist(), strict=True))
    is_each = params.per_cpu == "each"
    keys = ["group", "event", "cpu"] if is_each else ["group", "event"]
    codes, known = pd.MultiIndex.from_frame(lines[keys]).factorize()
    groups = {str(group) for group in lines["group"]} - {"", "/"}
    units = lines.groupby(codes)["unit"].first()
    counters = tuple(
        counter_of(key[1], units[at], key[0], key[2] if is_each else "", has_several=len(groups) > 1)
        for at, key in enumerate(known)
    )
    values = lines["value"].where(lines["running_pct"] >= params.min_running_pct)
    rates = (values / lines["time_s"].map(length_s)).to_numpy(dtype=float)
    n_lines = lines.groupby([codes, lines["time_s"].to_numpy()]).size().groupby(level=0).max()
    running = lines["running_pct"].where(values.notna()).groupby(codes).mean().to_numpy(dtype=float)
    return side_by_side(
        counters,
        lines["time_s"].to_numpy(dtype=float),
        lines["place"].to_numpy(dtype=np.int64),
        (np.arange(len(lines)), codes.astype(np.int64), rates),
        n_units=np.asarray(n_lines, dtype=np.int64),
        running_pct=running,
        part=part,
        started_at=recording.started_at,
        refused=tuple(refused),
    )
