"""How far the doses of a recording moved its benchmarks, told from its parts alone, as a Markdown table:

    python tests/studies/node_doses.py FOLDER [--by-kind]

A row for each benchmark and node (--by-kind: and kind, which a dose's name begins with; and medians by kind), then
counts. Distance: the stressed mean less the unstressed one, in standard deviations of that node's unstressed
executions. Only undisturbed executions count, and stress only where it was really applied; under a lowered limit they
are compared to each other."""

import argparse
import itertools
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import BadInput, WhorlError
from tasks.nodes.execution import PART_SCHEMA
from tasks.nodes.intake import FLAGGED
from tasks.nodes.preprocess.unification import conversion_of
from tasks.nodes.record.campaign import parts_in
from tasks.nodes.record.params import LEVELS
from tasks.nodes.tools import PARSERS

WATCHED = {
    "cpu-sysbench": "events_per_second", "memory-sysbench": "transfer_rate", "disk-fio": "read_clat_avg",
    "disk-ioping": "latency_avg", "network-qperf": "tcp_bw_bandwidth",
    "network-iperf3": "tx_c_transfer_bitrate_receiver",
}  # fmt: skip
FEWEST = 3  # unstressed executions for a spread
LOWERED = "lowered-"
ALWAYS = ("execution_id", "node", "benchmark")
COLUMNS = [*ALWAYS, "template_hash", "status", "is_stressed", "dose", "dose_level", "metrics"]
EXPECTED = "parts of whorl's recorder (executions-0001.parquet)"


def distance_sd(stressed: Sequence[float], unstressed: Sequence[float]) -> float:
    """Distance of the means in sample standard deviations of the unstressed; NaN where there are too few, or no spread.

    Cohen's d with the control group's deviation (Glass's Δ): the stress may change the spread too."""
    if len(unstressed) < FEWEST or not stressed:
        return math.nan
    spread = float(np.std(unstressed, ddof=1))
    return float((np.mean(stressed) - np.mean(unstressed)) / spread) if spread > 0 else math.nan


@dataclass(frozen=True)
class Recorded:
    """What matters here of one execution. template: its hash; level: 0 without a dose; limit: the name of a lowered
    one, empty for none; value: of the watched metric in base units, None where it was not measured or is_flagged."""

    node: str
    benchmark: str
    template: str
    dose: str
    limit: str
    level: int
    is_stressed: bool
    is_flagged: bool
    value: float | None

    @property
    def kind(self) -> str:
        """What the dose's name begins with; empty without one."""
        return self.dose.partition("-")[0]


@dataclass(frozen=True)
class Moved:
    """What the doses of one level did to a benchmark on a node. sd, ratio: NaN where there are too few executions (see
    distance_sd); n, n_unstressed: executions that were compared; n_not_applied: those that were to be stressed and were
    not, in flagged parts too."""

    benchmark: str
    kind: str
    node: str
    level: int
    sd: float
    ratio: float
    n: int
    n_unstressed: int
    n_not_applied: int


def read_recorded(folder: Path) -> list[Recorded]:
    """The executions of all parts of a folder, each once. Raises BadInput where there is no part, a broken one, or
    a benchmark with several templates: their results are never compared."""
    paths = parts_in(folder).paths()
    if not paths:
        raise BadInput(folder, "no parts of a recording", EXPECTED, "name the folder that holds them")
    found: dict[str, Recorded] = {}
    for path in paths:
        for row in _rows(path):
            found.setdefault(row["execution_id"], _recorded(row, is_flagged=bool(FLAGGED.search(path.name))))
    for benchmark in sorted({one.benchmark for one in found.values()}):
        hashes = {one.template for one in found.values() if one.benchmark == benchmark}
        if len(hashes) > 1:
            told = f"{benchmark} has {len(hashes)} templates ({', '.join(sorted(one[:8] or 'none' for one in hashes))})"
            raise BadInput(folder, told, "one template a benchmark", "move the parts of other templates away")
    return list(found.values())


def _rows(path: Path) -> list[dict[str, Any]]:
    ours = pa.schema([PART_SCHEMA.field(name) for name in COLUMNS])
    try:
        rows: list[dict[str, Any]] = pq.read_table(path, columns=COLUMNS).select(COLUMNS).cast(ours).to_pylist()
    except (pa.ArrowException, OSError, KeyError, ValueError) as problem:
        told = " ".join(str(problem).split())
        raise BadInput(path, f"cannot be read ({told})", EXPECTED, "move it away") from problem
    if lacking := [name for name in ALWAYS if any(row[name] is None for row in rows)]:
        raise BadInput(path, f"a row without {' and without '.join(lacking)}", EXPECTED, "move it away")
    return rows


def _recorded(row: dict[str, Any], *, is_flagged: bool) -> Recorded:
    value = None if is_flagged or row["status"] != "completed" else _watched(row["benchmark"], row["metrics"] or ())
    dose, lowered, limit = (row["dose"] or "").partition(LOWERED)
    level, is_stressed = int(row["dose_level"] or 0), bool(row["is_stressed"])
    about = (row["node"], row["benchmark"], row["template_hash"] or "", dose.rstrip("."), lowered + limit)
    return Recorded(*about, level, is_stressed, is_flagged, value)


def _watched(benchmark: str, metrics: Iterable[dict[str, Any]]) -> float | None:
    for one in metrics:
        if one["metric"] == WATCHED.get(benchmark) and one["value"] is not None and math.isfinite(one["value"]):
            return float(one["value"]) * conversion_of(one["unit"] or "", benchmark).factor
    return None


def moved_by(recorded: Sequence[Recorded], *, by_kind: bool = False) -> list[Moved]:
    """What each level did, for each benchmark with a watched metric and each of its nodes, in the order of WATCHED.

    by_kind: each kind of dose on its own, and what a lowered limit did as one more, of level 1."""
    found = []
    for benchmark in WATCHED:
        ours = [one for one in recorded if one.benchmark == benchmark]
        kinds = dict.fromkeys(one.kind for one in ours if one.level) if by_kind else {"": None}
        for kind, node in itertools.product(kinds, sorted({one.node for one in ours})):
            here = [one for one in ours if one.node == node and (not one.level or kind in ("", one.kind))]
            found += [_moved(here, level, kind) for level in LEVELS]
    return found


def _moved(here: Sequence[Recorded], level: int, kind: str) -> Moved:
    """Of the executions of one benchmark on one node."""
    dosed = [one for one in here if one.level == level]
    sums, n, n_calm = np.zeros(2), 0, 0
    for limit in dict.fromkeys(one.limit for one in here):
        calm = [one.value for one in here if not one.level and one.limit == limit and one.value is not None]
        values = [one.value for one in dosed if one.is_stressed and one.limit == limit and one.value is not None]
        n, n_calm = n + len(values), n_calm + len(calm)
        if values:
            ratio = float(np.mean(values) / np.mean(calm)) if calm and np.mean(calm) else math.nan
            sums += len(values) * np.array([distance_sd(values, calm), ratio])
    sd, ratio = (sums / n).tolist() if n else (math.nan, math.nan)
    benchmark, node = here[0].benchmark, here[0].node
    return Moved(benchmark, kind, node, level, sd, ratio, n, n_calm, sum(not one.is_stressed for one in dosed))


def lowered_by(recorded: Sequence[Recorded]) -> list[tuple[str, str, str, float, float]]:
    """What each lowered limit did to unstressed executions: benchmark, node, limit, distance, ratio of the means."""
    found = []
    for benchmark, node, limit in sorted({(one.benchmark, one.node, one.limit) for one in recorded if one.limit}):
        ours = [one for one in recorded if (one.benchmark, one.node, one.level) == (benchmark, node, 0)]
        before, after = (
            [one.value for one in ours if one.limit == which and one.value is not None] for which in ("", limit)
        )
        found.append((benchmark, node, limit, distance_sd(after, before), float(np.mean(after) / np.mean(before))))
    return found


def table_of(moved: Sequence[Moved], *, by_kind: bool = False) -> str:
    """A Markdown table, a row for each benchmark, kind and node."""
    doses = " | ".join(f"dose {level}: SD, ratio (n)" for level in LEVELS)
    what = "kind" if by_kind else "metric"
    lines = [f"| benchmark | {what} | node | unstressed | {doses} | not applied |", f"|{'---|' * (len(LEVELS) + 5)}"]
    for at in range(0, len(moved), len(LEVELS)):
        levels = moved[at : at + len(LEVELS)]
        first, cells = levels[0], " | ".join(_cell(one) for one in levels)
        of = f"{first.benchmark} | {first.kind or WATCHED[first.benchmark]} | {first.node} | {first.n_unstressed:,}"
        lines.append(f"| {of} | {cells} | {sum(one.n_not_applied for one in levels):,} |")
    return "\n".join(lines)


def _cell(one: Moved) -> str:
    sd, ratio = (f"{one.sd:+.1f}" if one.sd == one.sd else "–", f"{one.ratio:.3f}" if one.ratio == one.ratio else "–")
    return f"{sd}, {ratio} ({one.n:,})"


def summary_of(moved: Sequence[Moved]) -> str:
    """A Markdown table of how much worse doses made benchmarks: median and quarters by kind, benchmark and level."""
    worse: dict[tuple[str, int], list[float]] = defaultdict(list)
    for one in moved:
        sign = -1 if PARSERS[one.benchmark].metrics[WATCHED[one.benchmark]].higher_is_better else 1
        for name in (one.kind, one.benchmark, "all") if one.sd == one.sd else ():
            worse[name, one.level] += [sign * one.sd] * one.n
    names = [*dict.fromkeys(one.kind for one in moved), *dict.fromkeys(one.benchmark for one in moved), "all"]
    lines = ["| worse by, SD: median (quarters) of n | level 1 | level 2 | level 3 |", "|---|---|---|---|"]
    for name in names:
        some = [worse[name, level] for level in LEVELS]
        quarters = [np.percentile(one, (50, 25, 75)) if one else [math.nan] * 3 for one in some]
        cells = [f"{a:.1f} ({b:.1f} to {c:.1f}) of {len(one)}" for (a, b, c), one in zip(quarters, some, strict=True)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def counts_of(recorded: Sequence[Recorded]) -> str:
    """Executions by node and benchmark, in one line."""
    n = Counter((one.node, one.benchmark, one.is_flagged) for one in recorded)
    by_node: dict[str, list[str]] = defaultdict(list)
    for node, name in sorted({(one.node, one.benchmark) for one in recorded}):
        by_node[node].append(f"{name} {n[node, name, False]:,} + {n[node, name, True]:,}")
    told = "; ".join(f"{node}: {', '.join(cells)}" for node, cells in by_node.items())
    flagged = sum(one.is_flagged for one in recorded)
    return f"Executions, undisturbed + flagged, {len(recorded) - flagged:,} + {flagged:,} in all: {told}"


def main(words: Sequence[str] | None = None) -> None:
    """Read a folder, and print; bad input is one line on stderr."""
    asked = argparse.ArgumentParser(description="How far the doses of a recording moved its benchmarks.")
    asked.add_argument("folder", type=Path, help="folder with the parts of a recording")
    asked.add_argument("--by-kind", action="store_true", help="each kind of stress on its own")
    told = asked.parse_args(words)
    try:
        rows = read_recorded(told.folder)
    except WhorlError as error:
        print(error, file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    moved = moved_by(rows, by_kind=told.by_kind)
    print(table_of(moved, by_kind=told.by_kind))
    if told.by_kind:
        print(f"\n{summary_of(moved)}")
    for benchmark, node, limit, sd, ratio in lowered_by(rows):
        print(f"\n{benchmark} on {node}, {limit}: {sd:+.1f} SD, {ratio:.3f} of its value")
    print(f"\n{counts_of(rows)}")


if __name__ == "__main__":
    main()
