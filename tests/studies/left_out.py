"""What each part of the prediction of runtimes is worth on a log: the CRPS without it, in per cent of that with all, as
a Markdown table: `python -m tests.studies.left_out PATH [TIME_ZONE [ours=theirs …]]`. It is scored on the last fifth of
the first 80 % of the runs: the last fifth of the log is reported, so nothing is chosen by it."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from tasks.jobs.evaluate import SOURCE
from tasks.jobs.intake import WORD, Intake, find_logs, land_log
from tasks.jobs.job_keys import choose_key
from tasks.jobs.params import EvaluateParams, GroupParams, ReadParams
from tasks.jobs.predict import predictor, runtime_evaluation
from tasks.jobs.predict.mixture import N_CLASSES, best_weights
from tasks.jobs.predict.preparation import FINISHED, prepare, read_runs
from tasks.warehouse.ingest import ingest
from tasks.warehouse.place import Warehouse

SHARE, MEMORY_MB = 0.8, 2000
PARAMS = EvaluateParams()


def first_runs(path: str, read: ReadParams, statuses: Sequence[str] = FINISHED) -> pd.DataFrame:
    """The runs of these statuses in the time of the first SHARE of the finished runs of a log, by the key of jobs that
    predicts best there."""
    with tempfile.TemporaryDirectory() as home:
        warehouse = Warehouse(home=Path(home), memory_mb=MEMORY_MB)
        for log in find_logs([path]):
            ingest(warehouse, WORD, land_log(warehouse, log, Intake(SOURCE, "", read, GroupParams())).batch_id)
        finished, runs = read_runs(warehouse, SOURCE), read_runs(warehouse, SOURCE, statuses=statuses)
    until = np.sort(finished["submitted_at"].to_numpy())[int(SHARE * len(finished))]
    finished, runs = (
        rows[rows["submitted_at"] < until].reset_index(drop=True).drop(columns="period", errors="ignore")
        for rows in (finished, runs)
    )
    return choose_key(finished, PARAMS.predict.characterise.split).regrouped(runs)


def main(path: str, time_zone: str = "", *renamed: str) -> None:
    runs = first_runs(path, ReadParams(time_zone=time_zone, columns=dict(one.split("=") for one in renamed)))
    prepared = prepare(runs, PARAMS.predict.characterise)
    pool, fit, fitted = dict(predictor.POOLED), predictor.fit_boosted, {}

    def once(features, values, *levels, **how):  # the same trees for every part that is left out
        key = (len(features), len(levels), float(np.sum(values)))
        return fitted[key] if key in fitted else fitted.setdefault(key, fit(features, values, *levels, **how))

    def one_for_all(parts, runtime_s, support):
        even = np.full(len(parts), 1 / len(parts))
        return np.tile(best_weights(parts, runtime_s, towards=(np.eye(len(parts))[-1], even)), (N_CLASSES, 1))

    changes = {f"without: {part}": {"POOLED": {one: pool[one] for one in pool if one != part}} for part in pool}
    changes |= {"the same weights, however often a job ran": {"best_weights_by_support": one_for_all}}
    changes |= {"trees never relative": {"RELATIVE_GAIN": 0.999}}
    changes |= {"one earlier run is enough": {"beside_one_run": lambda quantiles, _: quantiles}}
    changes |= {"ends never averaged": {"ENDS": (0.0,)}, "limits not kept": {"learn_grace": lambda *_: None}}
    scores = {}
    with threadpool_limits(1), patch.multiple(predictor, fit_boosted=once):
        with patch.object(runtime_evaluation, "fit_boosted", once):
            for name, change in ({"all parts": {"ENDS": predictor.ENDS}} | changes).items():
                with patch.multiple(predictor, **change):
                    scores[name] = runtime_evaluation.evaluate_runtimes(prepared, {}, PARAMS).scored["model"]
    base = scores["all parts"]
    print(f"| {Path(path).name} | CRPS, % | width, % | coverage |\n|---|---|---|---|")
    for name, one in scores.items():
        crps, width = (one.measures[name] / base.measures[name] for name in ("crps", "width90_s"))
        print(f"| {name} | {100 * (crps - 1):+.1f} | {100 * (width - 1):+.1f} | {one.measures['coverage90']:.3f} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
