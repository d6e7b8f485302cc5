"""A trained predictor of a source with everything it needs, as files: LightGBM text, Parquet and JSON, nothing run.

What the files say is checked when they are read: one changed by hand or half written says so, it does not predict.
The model in use for a source is the champion of the registry; no training is imported here."""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from tasks.errors import BadInput, NotFound
from tasks.jobs.params import Kind, PredictParams
from tasks.jobs.predict.classifier import LightGbm
from tasks.jobs.predict.features import HistoricShapes, in_order, make_features
from tasks.jobs.predict.outcomes import MAIN as OUTCOMES
from tasks.jobs.predict.outcomes import Outcomes
from tasks.jobs.predict.peers import JOB, Histories, histories, peers_of
from tasks.jobs.predict.predictor import POOLED, Predictor
from tasks.jobs.predict.preparation import KINDS
from tasks.jobs.shapes import ShapeSet
from tasks.warehouse.connection import require
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, champion, folder_of

HASH_CHARS = 8


def shape_names(shapes: Mapping[Kind, ShapeSet]) -> dict[str, str]:
    """By kind: the kind, how many shapes, and a hash over all of their numbers."""
    hashes = {kind: hashlib.sha256(one.to_json().encode()).hexdigest()[:HASH_CHARS] for kind, one in shapes.items()}
    return {kind: f"{kind}-{len(one.centres)}-{hashes[kind]}" for kind, one in shapes.items()}


PARAMS, SEEN, MEDIANS, CATEGORIES = "params.json", "training_runs.parquet", "medians.parquet", "categories.json"


@dataclass(frozen=True)
class Trained:
    """model: the predictor; shapes and classifiers by kind (no classifier where nothing could be learnt, no shapes of
    ratios where all medians are 0 s); history_s:
    median of each job in period D1, seconds; seen: run_id and residual of the training runs, the log of runtime over
    the median that a model of earlier runs had predicted, missing for those earlier runs; params: of the training;
    outcomes: how runs end, None where the log has no time limits; categories: as History has them."""

    model: Predictor
    shapes: Mapping[Kind, ShapeSet]
    classifiers: Mapping[Kind, LightGbm]
    history_s: pd.Series
    seen: pd.DataFrame
    params: PredictParams
    outcomes: Outcomes | None = None
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The features that the predictor and the classifiers need, in order."""
        evidence = (name for classifier in self.classifiers.values() for each in classifier.evidence for name in each)
        of_classifiers = (name for classifier in self.classifiers.values() for name in classifier.columns)
        return tuple(in_order([*self.model.columns, *of_classifiers, *evidence]))

    def features(self, runs: pd.DataFrame, past: pd.DataFrame) -> pd.DataFrame:
        """The features of this model for `runs`, which know those of `past` that ended before: (n, p).

        past: finished runs of all jobs, with ended_at."""
        return self.known(runs, past)[0]

    def known(self, runs: pd.DataFrame, past: pd.DataFrame) -> tuple[pd.DataFrame, Histories]:
        """The features, and what peers of `runs` took before, as far as the model weighs it; as in `features`."""
        used = {
            POOLED[part][0] for part, of_classes in self.model.weights.items() if part in POOLED and any(of_classes)
        }
        peers = peers_of(runs, past)
        history = HistoricShapes(self.shapes, self.history_s, self.categories)
        features = make_features(runs, past, history, columns=self.columns, peers=peers)
        return features, histories(peers, {JOB, *used})

    def save(self, folder: Path) -> None:
        """Write everything into an existing folder."""
        self.model.save(folder)
        (folder / PARAMS).write_text(self.params.model_dump_json(indent=1), encoding="utf-8")
        (folder / CATEGORIES).write_text(json.dumps({name: list(values) for name, values in self.categories.items()}))
        self.seen.to_parquet(folder / SEEN, index=False)
        self.history_s.rename("median_s").rename_axis("group_key").reset_index().to_parquet(folder / MEDIANS)
        for kind, shapes in self.shapes.items():
            (folder / f"shapes-{kind}.json").write_text(shapes.to_json(), encoding="utf-8")
        for kind, classifier in self.classifiers.items():
            trees, rest = classifier.to_texts()
            (folder / f"classifier-{kind}.txt").write_text(trees, encoding="utf-8")
            (folder / f"classifier-{kind}.json").write_text(rest, encoding="utf-8")
        if self.outcomes:
            self.outcomes.save(folder)


def load_trained(folder: Path) -> Trained:
    """What save wrote. Raises BadInput if a file is missing, or is something else."""
    try:
        model = Predictor.load(folder)  # first, as it says which format the files have
        params = PredictParams.model_validate(json.loads(_text(folder / PARAMS)))
        medians = pd.read_parquet(folder / MEDIANS).set_index("group_key")["median_s"]
        kinds = [kind for kind in KINDS if kind != "ratio" or (folder / "shapes-ratio.json").exists()]
        shapes = {kind: ShapeSet.from_json(_text(folder / f"shapes-{kind}.json")) for kind in kinds}
        classifiers = {
            kind: LightGbm.from_texts(
                _text(folder / f"classifier-{kind}.txt"), _text(folder / f"classifier-{kind}.json")
            )
            for kind in KINDS
            if (folder / f"classifier-{kind}.txt").exists()
        }
        seen = pd.read_parquet(folder / SEEN)[["run_id", "residual"]]
        outcomes = Outcomes.load(folder) if (folder / OUTCOMES).exists() else None
        categories = {name: list(map(str, values)) for name, values in json.loads(_text(folder / CATEGORIES)).items()}
        return Trained(model, shapes, classifiers, medians, seen, params, outcomes, categories)
    except (OSError, ValueError, KeyError, TypeError, BadInput) as error:  # BadInput: of a part, without the folder
        problem = f"no trained model ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(folder, problem, "the files of 'whorl jobs train'", "train again") from error


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


WORD, KIND = "jobs", "runtime"


def champion_of(warehouse: Warehouse, source: str) -> tuple[ModelCard, Trained] | None:
    """The model in use for a source, loaded; None before the first training."""
    card = champion(warehouse.models, WORD, source, KIND)
    return (card, load_trained(folder_of(warehouse.models, WORD, card.model_id))) if card else None


def needed_champion(warehouse: Warehouse, source: str) -> tuple[ModelCard, Trained]:
    """The same. Raises NoWarehouse, NotFound before the first training, BadInput if its files are broken."""
    require(warehouse)
    card_and_model = champion_of(warehouse, source)
    if card_and_model is None:
        raise NotFound(no_model(source))
    return card_and_model


def no_model(source: str) -> str:
    """The line for a source without a model."""
    command = shlex.join(["whorl", "jobs", "train", "--source", source])
    return f"source {source!r} has no trained model yet; make one with {command}"
