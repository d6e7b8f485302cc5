"""A trained predictor of a source with everything it needs, as files: LightGBM text, Parquet and JSON, nothing run.

What the files say is checked when they are read: one changed by hand or half written says so, it does not predict."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.predict.classifier_lightgbm import LightGbm
from tasks.jobs.predict.evaluation_params import PredictParams
from tasks.jobs.predict.feature_words import in_order
from tasks.jobs.predict.features import make_features
from tasks.jobs.predict.features_shapes import HistoricShapes
from tasks.jobs.predict.peers import Histories, histories
from tasks.jobs.predict.predictor import Predictor
from tasks.jobs.shape_params import Kind
from tasks.jobs.shapes import ShapeSet

PARAMS, SEEN, MEDIANS = "params.json", "training_runs.parquet", "medians.parquet"
KINDS: tuple[Kind, ...] = ("ratio", "delta")


@dataclass(frozen=True)
class Trained:
    """model: the predictor; shapes and classifiers by kind (no classifier where nothing could be learnt); history_s:
    median of each job in period D1, seconds; seen: run_id and residual of the training runs, the log of runtime over
    the median that a model of earlier runs had predicted, missing for those earlier runs; params: of the training."""

    model: Predictor
    shapes: Mapping[Kind, ShapeSet]
    classifiers: Mapping[Kind, LightGbm]
    history_s: pd.Series
    seen: pd.DataFrame
    params: PredictParams

    @property
    def columns(self) -> tuple[str, ...]:
        """The features that the predictor and the classifiers need, in order."""
        evidence = (name for one in self.classifiers.values() for each in one.evidence for name in each)
        of_classifiers = (name for one in self.classifiers.values() for name in one.columns)
        return tuple(in_order([*self.model.columns, *of_classifiers, *evidence]))

    def features(self, runs: pd.DataFrame, past: pd.DataFrame) -> pd.DataFrame:
        """The features of this model for `runs`, which know those of `past` that ended before: (n, p).

        past: finished runs of all jobs, with ended_at."""
        asked = self.params.characterise
        medians = {str(key): float(value) for key, value in self.history_s.items()}
        historic = {
            kind: HistoricShapes(found, medians, asked.posterior.empty_bin_prior, asked.normalisation)
            for kind, found in self.shapes.items()
        }
        return make_features(runs, past, self.params.features, shapes=historic, columns=self.columns)

    def histories(self, runs: pd.DataFrame, past: pd.DataFrame) -> Histories:
        """What peers of `runs` took before, as the model takes it; arguments as in `features`."""
        return histories(runs, past)

    def save(self, folder: Path) -> None:
        """Write everything into an existing folder."""
        self.model.save(folder)
        (folder / PARAMS).write_text(self.params.model_dump_json(indent=1), encoding="utf-8")
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
        params = PredictParams.model_validate(json.loads(_text(folder / PARAMS)))
        medians = pd.read_parquet(folder / MEDIANS).set_index("group_key")["median_s"]
        shapes = {kind: ShapeSet.from_json(_text(folder / f"shapes-{kind}.json")) for kind in KINDS}
        classifiers = {
            kind: LightGbm.from_texts(
                _text(folder / f"classifier-{kind}.txt"), _text(folder / f"classifier-{kind}.json")
            )
            for kind in KINDS
            if (folder / f"classifier-{kind}.txt").exists()
        }
        seen = pd.read_parquet(folder / SEEN)[["run_id", "residual"]]
        return Trained(Predictor.load(folder), shapes, classifiers, medians, seen, params)
    except (OSError, ValueError, KeyError, TypeError, BadInput) as error:  # BadInput: of a part, without the folder
        problem = f"no trained model ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(folder, problem, "the files of 'whorl jobs train'", "train again") from error


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")
