"""How many executions it takes until a degradation that nobody labelled is told.

    python tests/studies/node_few.py [--draws 10] [--worse 5] [--before 3 5 10 20 30] [--minutes 60]

Each draw takes one node of data/recorded/nodes, of the first 80 % of its executions: so many calm ones of each
benchmark in their order, and behind them executions of a dose of stress as the worse ones; of the other nodes as many
calm ones. Everything is learned from, as by 'whorl nodes train', without labels. Prints how often an aspect of that
node is suspected or confirmed at the end, and one of another node."""

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tasks.nodes.detect.alarms import watch_nodes
from tasks.nodes.detect.verdicts import judge_history, learn_verdicts
from tasks.nodes.history import History, read_results
from tasks.nodes.node_words import GOING_ON
from tasks.nodes.params import AlarmParams, BudgetParams, DetectorParams, PreprocessParams, ReadParams
from tasks.nodes.type_tables import is_unstressed

RECORDED = Path(__file__).parents[2] / "data" / "recorded" / "nodes"
FIRST, MINUTE_S = 0.8, 60.0
LEVELS = (2, 3)


def drawn(
    history: History, before: int, worse: int, level: int, minutes: float, rng: np.random.Generator
) -> tuple[History, str]:
    """A history of rounds, one every `minutes`, and the node whose last rounds are stressed."""
    rows = history.executions
    calm, dose = is_unstressed(rows).to_numpy(dtype=bool), rows["dose_level"].fillna(0).to_numpy(dtype=int)
    sick = str(rng.choice(rows["node"].unique()))
    places: list[int] = []
    rounds: list[int] = []
    for (node, _), group in rows.groupby(["node", "benchmark"]):
        of = group.index.to_numpy()
        wanted = before if node == sick else before + worse
        kept = of[calm[of]]
        begin = rng.integers(0, max(len(kept) - wanted, 0) + 1)
        kept = kept[begin : begin + wanted]
        if node == sick:
            stressed = of[dose[of] == level]
            kept = np.append(kept, rng.choice(stressed, min(worse, len(stressed)), replace=False))
        places += kept.tolist()
        rounds += range(len(kept))
    round_of = pd.Series(rounds, index=places).sort_index()
    part = history.where(np.isin(np.arange(len(rows)), places))
    at_s = round_of.to_numpy() * minutes * MINUTE_S + np.arange(len(round_of)) / len(round_of) * MINUTE_S
    order = np.argsort(at_s, kind="stable")
    number = np.argsort(order)
    unknown: dict[str, Any] = {"is_stressed": pd.NA, "stress_wanted": pd.NA, "dose": "", "dose_level": pd.NA}
    started = pd.Timestamp(0) + pd.to_timedelta(at_s, "s")
    executions = part.executions.assign(started_at=started, **unknown).iloc[order].reset_index(drop=True)
    executions = executions.astype({"is_stressed": "boolean", "stress_wanted": "boolean", "dose_level": "Int64"})
    metrics = part.metrics.assign(execution=number[part.metrics["execution"].to_numpy()])
    metrics = metrics.sort_values(["execution", "metric"], ignore_index=True)
    return History(executions, metrics, part.telemetry.iloc[:0]), sick


def main() -> None:
    """Print a line for each number of executions before."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--worse", type=int, default=5)
    parser.add_argument("--before", type=int, nargs="+", default=[3, 5, 10, 20, 30])
    parser.add_argument("--minutes", type=float, default=60.0, help="from one round to the next")
    asked = parser.parse_args()
    recorded = read_results([str(RECORDED)], ReadParams()).history
    recorded = recorded.where(np.arange(len(recorded.executions)) < FIRST * len(recorded.executions))
    for before in asked.before:
        told: dict[str, list[bool]] = defaultdict(list)
        for seed in range(asked.draws):
            for level in LEVELS:
                history, sick = drawn(recorded, before, asked.worse, level, asked.minutes, np.random.default_rng(seed))
                parameters = (PreprocessParams(), DetectorParams(), BudgetParams(), AlarmParams())
                verdicts = judge_history(history, learn_verdicts(history, *parameters).model).executions
                states = watch_nodes(verdicts.merge(history.executions, on="execution_id"), AlarmParams()).states
                for row in states.itertuples():
                    told[f"dose {level}" if row.node == sick else "calm"].append(row.state in GOING_ON)
        shares = ", ".join(f"{name} {np.mean(alarms):.2f}" for name, alarms in sorted(told.items()))
        print(f"{before} before, {asked.worse} worse: {shares}", flush=True)


if __name__ == "__main__":
    main()
