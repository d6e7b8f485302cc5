"""What a training leaves behind: everything needed to predict, explain and ask what-if, in files without code."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tasks.boosters import booster_from
from tasks.errors import BadInput
from tasks.jobs.predict.classifier_lightgbm import LightGbm
from tasks.jobs.predict.conditional import Conditional
from tasks.jobs.predict.evaluation_params import PredictParams
from tasks.jobs.predict.features import make_features
from tasks.jobs.predict.features_shapes import HistoricShapes
from tasks.jobs.predict.location import Location
from tasks.jobs.predict.own_runs import Ints
from tasks.jobs.predict.residual_grid import make_grid
from tasks.jobs.predict.spread import Spread
from tasks.jobs.shape_params import Kind
from tasks.jobs.shapes import ShapeSet

MAIN, LOCATION, SPREAD = "predictor.json", "location.txt", "spread.txt"
LEAVES, SEEN, MEDIANS = "leaves.parquet", "training_runs.parquet", "medians.parquet"


@dataclass(frozen=True)
class Trained:
    """model: the predictor; shapes and classifiers by kind (no classifier where nothing could be learnt); history_s:
    median of each job in period D1, seconds; seen: run_id, bin of the training runs, against what models without them
    expected; params: what it was trained with."""

    model: Conditional
    shapes: Mapping[Kind, ShapeSet]
    classifiers: Mapping[Kind, LightGbm]
    history_s: pd.Series
    seen: pd.DataFrame
    params: PredictParams

    def features(self, runs: pd.DataFrame, past: pd.DataFrame) -> pd.DataFrame:
        """The features of this model for `runs`, which know those of `past` that ended before: (n, p)."""
        asked = self.params.characterise
        medians = {str(key): float(value) for key, value in self.history_s.items()}
        historic = {
            kind: HistoricShapes(found, medians, asked.posterior.empty_bin_prior, asked.normalisation)
            for kind, found in self.shapes.items()
        }
        return make_features(runs, past, self.params.features, shapes=historic, columns=self.model.columns)

    def bins_of(self, past: pd.DataFrame) -> Ints:
        """The bin of each earlier run against what was expected of it: as in training, or as this model expects it."""
        known = past["run_id"].map(self.seen.set_index("run_id")["bin"])
        bins = known.fillna(-1).to_numpy().astype(np.int64)
        new = np.flatnonzero(bins < 0)
        if len(new):
            rows = past.iloc[new]
            bins[new] = self.model.residual_bins(self.features(rows, past), rows["runtime_s"].to_numpy(dtype=float))
        return bins

    def save(self, folder: Path) -> None:
        """Write everything into an existing folder."""
        model, spread = self.model, self.model.spread
        main = {
            "prior_runs": model.prior_runs,
            "lean_on": model.lean_on,
            "width": model.width,
            "columns": model.columns,
            "fallback_log_s": model.location.fallback_log_s,
            "first_leaf": spread.first_leaf.tolist(),
            "overall": spread.overall.tolist(),
            "params": self.params.model_dump(mode="json"),
        }
        (folder / MAIN).write_text(json.dumps(main, indent=1), encoding="utf-8")
        (folder / LOCATION).write_text(model.location.booster.model_to_string(), encoding="utf-8")
        (folder / SPREAD).write_text(spread.forest.model_to_string(), encoding="utf-8")
        leaves = pd.DataFrame(spread.leaf_masses)
        leaves.set_axis([f"bin_{place}" for place in leaves], axis=1).to_parquet(folder / LEAVES, index=False)
        self.seen.to_parquet(folder / SEEN, index=False)
        self.history_s.rename("median_s").rename_axis("group_key").reset_index().to_parquet(folder / MEDIANS)
        for kind, shapes in self.shapes.items():
            (folder / f"shapes-{kind}.json").write_text(shapes.to_json(), encoding="utf-8")
        for kind, classifier in self.classifiers.items():
            trees, rest = classifier.to_texts()
            (folder / f"classifier-{kind}.txt").write_text(trees, encoding="utf-8")
            (folder / f"classifier-{kind}.json").write_text(rest, encoding="utf-8")


def load_trained(folder: Path) -> Trained:
    """What save wrote. Raises BadInput if a file is missing, or is something else."""
    try:
        main = json.loads(_text(folder / MAIN))
        params, columns = PredictParams.model_validate(main["params"]), tuple(map(str, main["columns"]))
        location = Location(booster_from(_text(folder / LOCATION), len(columns)), float(main["fallback_log_s"]))
        spread = Spread(
            booster_from(_text(folder / SPREAD), len(columns)),
            np.array(main["first_leaf"], dtype=np.int64),
            np.ascontiguousarray(pd.read_parquet(folder / LEAVES).to_numpy(dtype=float)),
            np.array(main["overall"], dtype=float),
            make_grid(params.predictor.spread),
        )
        lean = (float(main["prior_runs"]), main["lean_on"])
        model = Conditional(location, spread, *lean, columns, params.predictor, float(main["width"]))
        medians = pd.read_parquet(folder / MEDIANS).set_index("group_key")["median_s"]
        kinds: tuple[Kind, ...] = ("ratio", "delta")
        shapes = {kind: ShapeSet.from_json(_text(folder / f"shapes-{kind}.json")) for kind in kinds}
        classifiers = {
            kind: LightGbm.from_texts(
                _text(folder / f"classifier-{kind}.txt"), _text(folder / f"classifier-{kind}.json")
            )
            for kind in kinds
            if (folder / f"classifier-{kind}.txt").exists()
        }
        if spread.leaf_masses.shape[1] != spread.grid.n_bins:
            raise ValueError(f"{LEAVES} of {spread.leaf_masses.shape[1]} bins, not {spread.grid.n_bins}")
        return Trained(model, shapes, classifiers, medians, pd.read_parquet(folder / SEEN), params)
    except (OSError, ValueError, KeyError, TypeError, BadInput) as error:  # BadInput: of a part, without the folder
        problem = f"no trained model ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(folder, problem, "the files of 'whorl jobs train'", "train again") from error


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")
