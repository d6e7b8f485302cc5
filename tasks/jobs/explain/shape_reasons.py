"""What speaks for a shape of runtimes: SHAP values of the held-out runs, for one shape against the others and for one
over another (Zhu et al., Figure 9)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.errors import BadSetting, NotFound
from tasks.jobs.distribution import Floats
from tasks.jobs.explain.contributions import Contributions, push, shape_parts, towards
from tasks.jobs.explain.reasons import Explainer, words_of
from tasks.jobs.explain.whole_source import describe_held_out
from tasks.jobs.params import Kind
from tasks.jobs.predict.classifier import LEAST

EVIDENCE = {"shape": "earlier", "recent_shape": "last"}  # by the prefix of its columns: which of the job's own runs
LOW, HIGH = 1 / 3, 2 / 3


@dataclass(frozen=True)
class Reasons:
    """added: (n, p) SHAP values, log-odds; of_feature: (n, p) values, NaN if unknown; words: (p,) of the features."""

    added: Floats
    of_feature: Floats
    words: Sequence[str]


@dataclass(frozen=True)
class ShapeReasons:
    """Of n held-out runs. parts: p features to k shapes; features: (n, p) their values; evidence: columns that tell how
    well the job's own runs fit each shape, (k,) each: they are shown as one."""

    model_id: str
    kind: Kind
    parts: Contributions
    features: pd.DataFrame
    evidence: tuple[tuple[str, ...], ...]

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the most variable shape that the model knows."""
        known = np.flatnonzero(self.parts.knows)
        return int(known[0]), int(known[-1])

    def swarm(self, shape: int) -> Reasons:
        """What each feature adds to the log-odds of one shape against the others. Raises BadSetting for no shape."""
        self._check(shape)
        fits = [self._fit(columns, shape) for columns in self.evidence]
        words = f"how well the job's {{which}} runs fit shape {shape}"
        return self._shown(towards(self.parts, [shape]).single, fits, words)

    def two(self, shape: int, other: int) -> Reasons:
        """What each feature adds to the log-odds of one shape over the other. Raises BadSetting for no two shapes."""
        self._check(shape, other)
        if shape == other:
            raise BadSetting(f"shapes {shape} and {other}: expected two different ones")
        fits = [self._fit(columns, shape) - self._fit(columns, other) for columns in self.evidence]
        return self._shown(
            push(self.parts, other, shape), fits, f"how much better its {{which}} runs fit shape {shape}"
        )

    def _fit(self, columns: tuple[str, ...], shape: int) -> Floats:
        """The logarithm of how well the own runs fit the shape, (n,), as the model takes it; none fit all alike."""
        probability = self.features[columns[shape]].fillna(1 / len(columns)).to_numpy(dtype=np.float64)
        return np.asarray(np.log(np.maximum(probability, LEAST)))

    def _shown(self, added: Floats, fits: Sequence[Floats], evidence: str) -> Reasons:
        """Contributions, values and words, the columns of each evidence summed to one feature."""
        names = list(self.parts.features)
        plain = [place for place, name in enumerate(names) if not any(name in columns for columns in self.evidence)]
        values = self.features[names].to_numpy(dtype=np.float64)[:, plain]
        sums = [added[:, [names.index(name) for name in columns]].sum(axis=1) for columns in self.evidence]
        words = [words_of(names[place]) for place in plain]
        words += [evidence.format(which=EVIDENCE[columns[0].rsplit("_", 2)[0]]) for columns in self.evidence]
        return Reasons(np.column_stack([added[:, plain], *sums]), np.column_stack([values, *fits]), words)

    def _check(self, *shapes: int) -> None:
        known = np.flatnonzero(self.parts.knows)
        for shape in shapes:
            if shape not in known:
                numbers = ", ".join(str(number) for number in known)
                raise BadSetting(f"shape {shape}: the model {self.model_id} knows the {self.kind} shapes {numbers}")


def find_shape_reasons(explainer: Explainer, kind: Kind) -> ShapeReasons:
    """SHAP values of the held-out runs for every shape of one kind, by LightGBM's pred_contrib.

    Raises BadInput if the model has seen all runs, NotFound if it does not tell at least two shapes of it apart."""
    classifier, model_id = explainer.trained.classifiers.get(kind), explainer.model_id
    if classifier is None or sum(classifier.present) < 2:
        raise NotFound(f"model {model_id}: it tells no two {kind} shapes apart; train it on more of the log")
    held_out = describe_held_out(explainer.trained, explainer.runs)
    features = held_out.features.iloc[held_out.test].reset_index(drop=True)
    return ShapeReasons(model_id, kind, shape_parts(classifier, features), features, tuple(classifier.evidence))


def ends_of(reasons: Reasons) -> Floats:
    """Mean addition over the runs whose feature is in its lowest and in its highest third: (p, 2).

    NaN for a feature that is constant or unknown. Ends that are tied with more runs hold them all."""
    ends = np.full((len(reasons.words), 2), np.nan)
    for feature, values in enumerate(reasons.of_feature.T):
        known = values[np.isfinite(values)]
        if len(np.unique(known)) < 2:
            continue
        low, high = np.quantile(known, [LOW, HIGH], method="nearest")
        is_low = values <= min(low, known[known < known.max()].max())
        for side, mask in enumerate((is_low, (values >= high) & ~is_low)):
            if mask.any():
                ends[feature, side] = reasons.added[mask, feature].mean()
    return ends
