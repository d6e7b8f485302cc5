"""Kill the steps that learn: train, fingerprint and preprocess, over small real recordings. Run by test_train_kills.py.

    python train_kills.py FOLDER SEED JOBS_PARAMS SCENARIO=N_KILLS…

Every other kill of a scenario comes at a step (a statement, or an operation on a file), so spread that each stage has
its share; the others come at random moments. Each is in a fresh copy of the home. Prints one JSON object."""

import importlib
import json
import random
import shutil
import signal
import sys
import time
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "warehouse"))
sys.path.insert(0, str(Path(__file__).parents[2] / "workloads"))

import kill_steps
import kills
from kill_scenarios import Scenario, place

from tasks.jobs import steps as job_models
from tasks.jobs import steps as job_steps
from tasks.jobs.params import EvaluateParams, GroupParams
from tasks.jobs.params import ReadParams as JobReadParams
from tasks.nodes import answers, steps, verdict_steps
from tasks.nodes import steps as node_steps
from tasks.nodes.params import (
    AlarmParams,
    BudgetParams,
    DetectorParams,
    FitParams,
    ModelParams,
    PreprocessParams,
    ScoreParams,
)
from tasks.nodes.params import ReadParams as NodeReadParams
from tasks.warehouse import registry
from tasks.warehouse.place import PruneParams, Warehouse
from tasks.warehouse.pruning import prune
from tasks.workloads import steps as workload_steps
from tasks.workloads.params import ReadParams

RECORDED = Path(__file__).parents[3] / "data" / "recorded"
SOURCE = "log"
SCORE = ScoreParams(resamples=100)
LATER = datetime(2100, 1, 1)  # whatever a kill has left is old by then


def prepare_jobs(warehouse: Warehouse) -> None:
    for name in ("runs-0006", "runs-0009", "runs-0010"):
        path = str(RECORDED / "jobs" / f"{name}.parquet")
        landed = job_steps.land_log(warehouse, path, SOURCE, "table", JobReadParams(), GroupParams())
        job_steps.ingest_batch(warehouse, landed)


def prepare_workloads(warehouse: Warehouse) -> None:
    path = str(RECORDED / "workloads" / "runs-0001.parquet")
    workload_steps.ingest_batch(warehouse, workload_steps.land_telemetry(warehouse, path, SOURCE, "wide", ReadParams()))


def prepare_nodes(warehouse: Warehouse) -> None:
    path = str(RECORDED / "nodes" / "executions-0001.parquet")
    landed = node_steps.land_executions(warehouse, path, SOURCE, "recorded", NodeReadParams())
    node_steps.ingest_batch(warehouse, landed)


def prepare_node_model(warehouse: Warehouse) -> None:
    prepare_nodes(warehouse)
    train_nodes(warehouse)


def train_jobs(params: EvaluateParams, warehouse: Warehouse) -> None:
    job_models.train(warehouse, SOURCE, params, "run")


def train_nodes(warehouse: Warehouse) -> None:
    given = (PreprocessParams(), DetectorParams(), BudgetParams(), AlarmParams(), SCORE)
    verdict_steps.learn(warehouse, SOURCE, *given, "run")


def train_network(warehouse: Warehouse) -> None:
    few = ModelParams(fit=FitParams(epochs=5))
    steps.train(warehouse, SOURCE, few, PreprocessParams(), SCORE, "run")


def judge_nodes(warehouse: Warehouse) -> None:
    verdict_steps.judge(warehouse, SOURCE, SCORE)


def preprocess(warehouse: Warehouse) -> None:
    answers.preprocess(warehouse, SOURCE, PreprocessParams(), SCORE, "run")


def scenarios(job_params: EvaluateParams) -> dict[str, Scenario]:
    return {
        "jobs-train": Scenario(prepare_jobs, partial(train_jobs, job_params)),
        "workloads-train": Scenario(prepare_workloads, kill_steps.train),
        "nodes-train": Scenario(prepare_nodes, train_nodes),
        "nodes-train-network": Scenario(prepare_nodes, train_network),
        "workloads-fingerprint": Scenario(prepare_workloads, kill_steps.fingerprint),
        "nodes-fingerprint": Scenario(prepare_node_model, judge_nodes),
        "nodes-preprocess": Scenario(prepare_nodes, preprocess),
    }


def outcome(warehouse: Warehouse) -> dict[str, Any]:
    """Rows, models with their figures, and what is left behind once the warehouse was pruned."""
    prune(warehouse, PruneParams(models_kept=10_000), LATER)
    made = registry.cards(warehouse.models)
    hidden = [path.name for path in warehouse.models.glob("*/.*")]
    parts = [path.name for path in warehouse.home.rglob("*.part*")] + [
        path.name for path in (Path(warehouse.landing_folder) / "fingerprints").rglob("*.parquet")
    ]
    figures = {one.model_id: {name: float(value).hex() for name, value in one.metrics.items()} for one in made}
    files = {one.model_id: sorted(path.name for path in folder_of(warehouse, one).iterdir()) for one in made}
    return kill_steps.outcome(warehouse) | {"figures": figures, "files": files, "left": hidden + parts}


def folder_of(warehouse: Warehouse, card: registry.ModelCard) -> Path:
    return warehouse.models / card.word / card.model_id


def import_all(scenario: Scenario, prepared: Path, home: Path) -> None:
    """Import here what the work imports, so that a child spends its time, and is killed, in the work."""
    shutil.copytree(prepared, home)

    def work() -> list[str]:
        scenario.work(place(home))
        top = RECORDED.parents[1]  # torch-geometric makes modules of its own below ours, without a file there
        return [name for name in sys.modules if (top / name.replace(".", "/")).with_suffix(".py").is_file()]

    status, names = kills.in_child(work)
    assert status == 0, names
    for name in names:
        importlib.import_module(name)
    shutil.rmtree(home)


def kill(name: str, scenario: Scenario, folder: Path, n_kills: int, rng: random.Random) -> dict[str, Any]:
    """Kill one scenario, and run it again, n_kills times."""
    prepared, home = folder / name / "prepared", folder / name / "home"
    prepared.parent.mkdir(parents=True)
    status, fault = kills.in_child(lambda: scenario.prepare(place(prepared)))
    assert status == 0, fault
    import_all(scenario, prepared, home)
    shutil.copytree(prepared, home)
    begun = time.monotonic()
    n_steps, expected = kills.undisturbed(scenario, home)
    took_s = time.monotonic() - begun
    faults, n_killed = {}, 0
    for number in range(2 * n_kills):  # a moment may come after the end
        if n_killed == n_kills:
            break
        shutil.rmtree(home)
        shutil.copytree(prepared, home)
        at = 1 + number * n_steps // (2 * n_kills) if number % 2 == 0 else 0

        def work(at: int = at) -> None:
            kills.Killer(home, at).watch()
            scenario.work(place(home))

        after_s = None if at else rng.uniform(0.05, 0.9) * took_s
        status, told = kills.in_child(work, after_s)
        if status == 0:
            continue
        n_killed += 1
        fault = "" if status == -signal.SIGKILL else f"not killed: {status} {told}"
        fault = fault or kills.aftermath(scenario, home, expected, with_rebuild=False)
        faults |= {f"step {at}" if at else f"{after_s:.2f} of {took_s:.2f} s": fault} if fault else {}
    return {"n_steps": n_steps, "n_kills": n_killed, "took_s": took_s, "faults": faults}


def main(folder: str, seed: str, job_params: str, *asked: str) -> None:
    kills.outcome, kills.Killer = outcome, kill_steps.Killer
    kill_steps.compile_once()
    known, rng = scenarios(EvaluateParams.model_validate_json(job_params)), random.Random(int(seed))
    counts = {name: int(n) for name, n in (one.split("=") for one in asked)}
    print(json.dumps({name: kill(name, known[name], Path(folder), n, rng) for name, n in counts.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
