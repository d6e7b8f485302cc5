"""How far each dose of a recording moved its benchmark, from the parts alone.

    python -m tasks.nodes.record.recorded_doses FOLDER [--json]

Prints a Markdown table, a row for each benchmark and node. Of each dose: the stressed mean less the unstressed one, in
standard deviations of that node's unstressed executions, the ratio of the two means, and how many stressed executions
there are. Only undisturbed executions count, and stress only where it was really applied."""

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tasks.errors import WhorlError
from tasks.nodes.record.distances import distance_sd
from tasks.nodes.record.doses import LEVELS
from tasks.nodes.record.ladder import WATCHED
from tasks.nodes.record.recorded_rows import Recorded, read_recorded


@dataclass(frozen=True)
class Moved:
    """What the doses of one level did to a benchmark on a node. sd, ratio: NaN where there are too few executions (see
    distance_sd); n, n_unstressed: executions that were compared; n_not_applied: those that were to be stressed and were
    not, in flagged parts too; doses: their names."""

    benchmark: str
    metric: str
    node: str
    level: int
    doses: tuple[str, ...]
    sd: float
    ratio: float
    n: int
    n_unstressed: int
    n_not_applied: int


def moved_by(recorded: Sequence[Recorded]) -> list[Moved]:
    """What each level did, for each benchmark with a watched metric and each of its nodes, in the order of WATCHED."""
    pairs = {(one.benchmark, one.node) for one in recorded}
    nodes = {benchmark: sorted(node for name, node in pairs if name == benchmark) for benchmark in WATCHED}
    found = []
    for benchmark in WATCHED:
        for node in nodes[benchmark]:
            ours = [one for one in recorded if (one.benchmark, one.node) == (benchmark, node)]
            found += [_moved(ours, level) for level in LEVELS]
    return found


def _moved(ours: Sequence[Recorded], level: int) -> Moved:
    """Of the executions of one benchmark on one node."""
    calm = [one.value for one in ours if one.level == 0 and not one.is_stressed and one.value is not None]
    dosed = [one for one in ours if one.level == level]
    stressed = [one.value for one in dosed if one.is_stressed and one.value is not None]
    has_ratio = bool(stressed and calm and np.mean(calm))
    return Moved(
        benchmark=ours[0].benchmark,
        metric=WATCHED[ours[0].benchmark],
        node=ours[0].node,
        level=level,
        doses=tuple(sorted({one.dose for one in dosed if one.dose})),
        sd=distance_sd(stressed, calm),
        ratio=float(np.mean(stressed) / np.mean(calm)) if has_ratio else math.nan,
        n=len(stressed),
        n_unstressed=len(calm),
        n_not_applied=sum(not one.is_stressed for one in dosed),
    )


def table_of(moved: Sequence[Moved]) -> str:
    """A Markdown table, a row for each benchmark and node."""
    doses = " | ".join(f"dose {level}: SD, ratio (n)" for level in LEVELS)
    lines = [f"| benchmark | metric | node | unstressed | {doses} | not applied |", f"|{'---|' * (len(LEVELS) + 5)}"]
    for at in range(0, len(moved), len(LEVELS)):
        levels = moved[at : at + len(LEVELS)]
        first, cells = levels[0], " | ".join(_cell(one) for one in levels)
        of = f"{first.benchmark} | {first.metric} | {first.node} | {first.n_unstressed:,}"
        lines.append(f"| {of} | {cells} | {sum(one.n_not_applied for one in levels):,} |")
    return "\n".join(lines)


def _cell(one: Moved) -> str:
    sd, ratio = (f"{one.sd:+.1f}" if one.sd == one.sd else "–", f"{one.ratio:.3f}" if one.ratio == one.ratio else "–")
    return f"{sd}, {ratio} ({one.n:,})"


def counts_of(recorded: Sequence[Recorded]) -> list[dict[str, Any]]:
    """Executions by node and benchmark: node, benchmark, n_undisturbed, n_flagged."""
    n = Counter((one.node, one.benchmark, one.is_flagged) for one in recorded)
    pairs = sorted({(one.node, one.benchmark) for one in recorded})
    return [
        {"node": node, "benchmark": name, "n_undisturbed": n[node, name, False], "n_flagged": n[node, name, True]}
        for node, name in pairs
    ]


def line_of(counts: Sequence[dict[str, Any]]) -> str:
    """The counts in one line."""
    by_node: dict[str, list[str]] = {}
    for one in counts:
        cell = f"{one['benchmark']} {one['n_undisturbed']:,} + {one['n_flagged']:,}"
        by_node.setdefault(one["node"], []).append(cell)
    told = "; ".join(f"{node}: {', '.join(cells)}" for node, cells in by_node.items())
    totals = [sum(one[name] for one in counts) for name in ("n_undisturbed", "n_flagged")]
    return f"Executions, undisturbed + flagged, {totals[0]:,} + {totals[1]:,} in all: {told}"


def as_json(moved: Sequence[Moved], counts: Sequence[dict[str, Any]]) -> str:
    """All of it as one JSON object; null where a figure is not known."""
    rows = [{key: None if value != value else value for key, value in asdict(one).items()} for one in moved]
    return json.dumps({"doses": rows, "executions": counts}, indent=2, allow_nan=False)


def main(words: Sequence[str] | None = None) -> None:
    """Read a folder and print; bad input is one line on stderr."""
    asked = argparse.ArgumentParser(description="Tell how far each dose of a recording moved its benchmark.")
    asked.add_argument("folder", type=Path, help="folder with the parts of a recording")
    asked.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    told = asked.parse_args(words)
    try:
        recorded = read_recorded(told.folder)
    except WhorlError as error:
        print(error, file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    moved, counts = moved_by(recorded), counts_of(recorded)
    print(as_json(moved, counts) if told.json else f"{table_of(moved)}\n\n{line_of(counts)}")


if __name__ == "__main__":
    main()
