"""What-if questions answered by the model in use: on held-out runs or the next run of a job, and on matched pairs;
and the answers in plain figures for JSON, and in the tables of the warehouse."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.choices import Named
from tasks.errors import NotFound
from tasks.jobs.control.effects import MAX_ROWS, ChangeOutcome, ShapeModel, assess, changes_by_group
from tasks.jobs.control.pairs import (
    Claims,
    Comparison,
    Noise,
    Pairs,
    compare,
    describe_noise,
    describe_overall,
    make_claims,
    match_pairs,
    noise_of,
)
from tasks.jobs.control.scenarios import EDITS, OFFERED, Scenario, apply, check_varied, skus_of
from tasks.jobs.distribution import Empirical, Floats
from tasks.jobs.explain.whole_source import held_out_places, training_places
from tasks.jobs.normalisation import historic_medians, quantiles
from tasks.jobs.params import MEASURES, Kind, WhatIfParams
from tasks.jobs.predict.features import BY_SKU
from tasks.jobs.predict.peers import Histories
from tasks.jobs.predict.predicting import end_of, known_next, next_conditions
from tasks.jobs.predict.preparation import read_runs, with_ends
from tasks.jobs.predict.trained import Trained, needed_champion
from tasks.jobs.summary import find_group
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import json_of, replace_rows

SHARE = "vertex_share_{}_mean"
LARGEST_LOG = 2.0  # of one run's deviation from what was expected: further ones have other causes
SEED = 0  # of the resamples and the samples of rows
RECORDED: tuple[Named, ...] = ("no_spare", "newest_sku", "steady_load")  # what_if of the matched pairs
LEVELS = (0.25, 0.75, 0.95)
RIDGE = 2.0  # effects as if two more runs, all on one SKU, had shown none
LEAST_RUNS = 30


@dataclass(frozen=True)
class Placement:
    """effects: by SKU the log of the runtime if all vertices work there, against their mean; empty with a reason."""

    effects: dict[str, float]
    n_runs: int
    n_groups: int
    reason: str | None = None

    def log_shift(self, before: pd.DataFrame, after: pd.DataFrame) -> Floats:
        """Change of the log runtime by the SKUs of the features before and after: (n,), 0 where nothing is known."""
        names = [name for name in sorted(self.effects) if SHARE.format(name) in before]
        if not names:
            return np.zeros(len(before))
        effects = np.array([self.effects[name] for name in names])
        old, new = likely_shares(before, names), likely_shares(after, names)
        return np.asarray(np.nan_to_num(new @ effects - old @ effects))  # (n, n_skus) @ (n_skus,)


def likely_shares(features: pd.DataFrame, skus: list[str]) -> Floats:
    """Share of a run's vertices on each SKU: that of earlier runs, over the SKUs offered to this one; (n, n_skus).

    All alike where earlier runs were on none of those; NaN where nothing is known."""
    shares, offers = (
        features.reindex(columns=[name.format(sku) for sku in skus]).to_numpy(dtype=float) for name in (SHARE, OFFERED)
    )
    offered = np.where(np.isfinite(offers).all(axis=1, keepdims=True), offers > 0, 1.0)
    there = shares * offered
    there = np.where(there.sum(axis=1, keepdims=True) == 0, offered, there)  # NaN stays: nothing is known
    total = there.sum(axis=1, keepdims=True)
    return np.asarray(there / np.where(total > 0, total, np.nan))


def fit_placement(runs: pd.DataFrame, log_residuals: Floats) -> Placement:
    """Least squares of log_residuals on the shares of vertices by SKU, both less the mean of their job.

    runs: group_key, n_vertices, vertices_<sku> of read_runs; log_residuals: (n,) log of runtime over what a model
    without the run expected. A ridge, since few runs tell little. A log without SKUs gives a reason."""
    columns = [str(name) for name in runs if str(name).startswith(BY_SKU)]
    if len(columns) < 2 or "n_vertices" not in runs:
        return Placement({}, 0, 0, "the log does not say on which of several SKUs vertices worked")
    shares = runs[columns].div(runs["n_vertices"].where(runs["n_vertices"] > 0), axis=0)
    residuals = pd.Series(np.clip(log_residuals, -LARGEST_LOG, LARGEST_LOG), index=runs.index)
    is_known = shares.notna().all(axis=1) & residuals.notna()
    shares, residuals, jobs = shares[is_known], residuals[is_known], runs.loc[is_known, "group_key"]
    if len(jobs) < LEAST_RUNS:
        return Placement({}, len(jobs), jobs.nunique(), f"fewer than {LEAST_RUNS} runs say where their vertices worked")
    x, y = ((values - values.groupby(jobs).transform("mean")).to_numpy() for values in (shares, residuals))
    effects = np.linalg.solve(x.T @ x + RIDGE * np.eye(len(columns)), x.T @ y)
    named = {name.removeprefix(BY_SKU): float(effect) for name, effect in zip(columns, effects, strict=True)}
    return Placement(named, len(jobs), jobs.nunique())


def placement_of(trained: Trained, past: pd.DataFrame) -> Placement:
    """The same of the runs of a log that the model was trained on. past: finished runs, as read_runs has them."""
    # log of runtime over what a model of earlier runs predicted; NaN if not trained on, or among those
    residuals = past["run_id"].map(trained.seen.set_index("run_id")["residual"]).to_numpy(dtype=float)
    return fit_placement(past, residuals)


def describe_placement(placement: Placement, features: pd.DataFrame) -> list[str]:
    """The fastest and the slowest SKU in a sentence; none without effects."""
    known = [sku for sku in skus_of(features) if sku in placement.effects]
    ordered = sorted(known, key=lambda sku: placement.effects[sku])
    if len(ordered) < 2:
        return []
    less = 1 - np.exp(placement.effects[ordered[0]] - placement.effects[ordered[-1]])
    return [
        f"Runs of the same job took {100 * less:.0f} % less with all vertices on {ordered[0]} than with all on "
        f"{ordered[-1]}, by {placement.n_runs:,} runs of {placement.n_groups:,} jobs; this is in the prediction."
    ]


@dataclass(frozen=True)
class Subjects:
    """runs: (n,) submissions in order; features: (n, p), known: of them as they are; medians_s: (n,) historic medians,
    NaN where unknown."""

    trained: Trained
    runs: pd.DataFrame
    features: pd.DataFrame
    known: Histories
    medians_s: Floats
    placement: Placement

    def predict(self, frame: pd.DataFrame) -> Empirical:
        """Distributions of the same rows with other features: (n,).

        Earlier runs count by what they took against what was expected, and that stays: a job that takes 20 % longer
        than expected is taken to do so after the change as well. (Runtimes from before the change, counted as they
        are, would pull the prediction back to them.) Where the change moves vertices to another SKU, what that does to
        runs of the same job is added (`placement`)."""
        model = self.trained.model
        change = model.expected_log_s(frame) - model.expected_log_s(self.features)
        return model.predict(frame, self.known.shifted(change), shift=self.placement.log_shift(self.features, frame))


def make_subjects(trained: Trained, rows: pd.DataFrame, past: pd.DataFrame, placement: Placement) -> Subjects:
    """rows: submissions, also of next_conditions; past: finished runs of the log, none of them done again with a
    change, as read_runs has them. A row knows the runs of `past` that ended before it."""
    features, known = known_next(trained, rows, past) if "as_at" in rows else trained.known(rows, past)
    medians = historic_medians(rows, trained.history_s, past=past)
    return Subjects(trained, rows, features, known, medians["median_s"].to_numpy(dtype=float), placement)


@dataclass(frozen=True)
class ChangeAnswer:
    """outcome: what is predicted; measured: the change on its matched pairs, None with a reason where no run was done
    again with it; noise: of two runs that nothing sets apart on purpose."""

    scenario: Scenario
    outcome: ChangeOutcome
    placement: Placement
    measured: Comparison | None
    reason: str | None
    noise: Noise
    claims: Claims


@dataclass(frozen=True)
class Ground:
    """All that questions to one log have in common, made once.

    subjects: the rows that a change is tried on; training: (m, p) features of rows that the model learnt from;
    runs: all runs, those done again with a change among them; past: those of the log; job: the key of the job whose
    next run is asked about, as one distribution over the subjects, None for all jobs."""

    source: str
    model_id: str
    trained: Trained
    subjects: Subjects
    training: pd.DataFrame
    runs: pd.DataFrame
    past: pd.DataFrame
    pairs: Pairs
    models: Mapping[Kind, ShapeModel]
    job: str | None

    def answer(self, scenario: Scenario, params: WhatIfParams) -> ChangeAnswer:
        """What is predicted to follow from a change, and what was measured of it, if it was; the same question gets the
        same answer. Raises BadInput if the log does not have what is changed, or one value of it."""
        for edit in scenario.edits:
            check_varied(edit, self.training)
        subjects, model, rng = self.subjects, self.trained.model, np.random.default_rng(SEED)
        with threadpool_limits(1):
            outcome = assess(
                scenario,
                subjects.features,
                subjects.predict,
                subjects.runs["group_key"].to_numpy(),
                subjects.medians_s,
                params,
                rng,
                models=self.models,
                training=self.training,
                leaves=lambda frame: model.boosted.leaves(frame[list(model.columns)]),
                is_single_run=self.job is not None,
            )
            measured, reason = self._measured(scenario, rng)
        noise = noise_of(self.pairs)
        claims = make_claims(outcome.changes, outcome.support, measured.score if measured else None)
        if any(name.startswith("vertex_share_") for name in outcome.features):
            claims.can.extend(describe_placement(subjects.placement, subjects.features))
        if outcome.changes.loc["money", "n_runs"]:
            price = f"{params.price_per_token_hour:g} {params.currency} a token-hour of {params.price_date}"
            claims.can.append(f"Money is in {params.currency}, at {price}.")
        if measured is not None:
            overall = describe_overall(measured.overall)
            claims.can.extend(overall.can)
            claims.cannot.extend([*overall.cannot, *describe_noise(noise)])
        return ChangeAnswer(scenario, outcome, subjects.placement, measured, reason, noise, claims)

    def _measured(self, scenario: Scenario, rng: np.random.Generator) -> tuple[Comparison | None, str | None]:
        what_if = recorded_as(scenario)
        if what_if is None:
            return None, f"runs were done again with {', '.join(RECORDED)} only, if at all"
        pairs = self.pairs.of(what_if)
        if self.job is not None:
            pairs = pairs[pairs["group_key"] == self.job].reset_index(drop=True)
        if pairs.empty:
            return None, self.pairs.reason or f"no run was done again with {what_if}"
        rows = self.runs.iloc[pairs["row_before"].to_numpy()].reset_index(drop=True)
        before = make_subjects(self.trained, rows, self.past, self.subjects.placement)
        # in order of submission, as the changes of offers need it
        edited = apply(scenario, before.features.loc[before.runs["submitted_at"].sort_values(kind="stable").index])
        edited = edited.loc[before.features.index]
        old, new = before.predict(before.features), before.predict(edited)
        return compare(pairs, old, new, before.medians_s, what_if, rng), None


def ask_source(warehouse: Warehouse, source: str, *, job: str | None = None) -> Ground:
    """Load the model in use and the rows that changes are tried on; job: a key or a unique part of it.

    Raises NoWarehouse, NotFound without a model, such a source or such a job, BadInput without held-out runs."""
    card, trained = needed_champion(warehouse, source)
    key = None if job is None else find_group(warehouse, source, job)
    runs = read_runs(warehouse, source, with_what_ifs=True)
    with threadpool_limits(1):
        return make_ground(trained, runs, job=key, source=source, model_id=card.model_id)


def make_ground(
    trained: Trained, runs: pd.DataFrame, *, job: str | None = None, source: str = "", model_id: str = ""
) -> Ground:
    """runs: of read_runs(with_what_ifs=True). Held-out runs, at most MAX_ROWS evenly over time; with `job` its next
    run, under what was known before each of its last runs.

    Raises BadInput without a held-out run, NotFound for a job without finished runs."""
    runs = with_ends(runs)
    past = runs[runs["what_if"].isna()].reset_index(drop=True) if "what_if" in runs else runs.reset_index(drop=True)
    if job is None:
        rows = past.iloc[held_out_places(trained, past, MAX_ROWS)]
        rows = rows.sort_values(["submitted_at", "run_id"], kind="stable").reset_index(drop=True)
    elif (past["group_key"] == job).any():
        rows = next_conditions(past[past["group_key"] == job], now=end_of(past))
    else:
        raise NotFound(f"job {job!r}: no finished run with a runtime; ask about another job")
    subjects = make_subjects(trained, rows, past, placement_of(trained, past))
    models = {}
    for kind, classifier in trained.classifiers.items():
        # to the width of a bin: a quantile among the outliers is the end of the bins, and the deviation cannot be told
        shapes = trained.shapes[kind]
        p25, p75, p95 = quantiles(shapes.centres, shapes.bins, LEVELS).T
        table = pd.DataFrame({"outlier_percent": 100 * shapes.centres[:, -1], "p25_p75": p75 - p25, "p95": p95})
        models[kind] = ShapeModel(classifier.predict_proba, table)
    known = trained.features(past.iloc[training_places(trained, past, MAX_ROWS)], past)
    return Ground(source, model_id, trained, subjects, known, runs, past, match_pairs(runs), models, job)


def recorded_as(scenario: Scenario) -> Named | None:
    """The recorded what-if that makes the same changes, however it was asked for."""
    return next((name for name in RECORDED if (EDITS[name],) == scenario.edits), None)


BY = "p95_s"  # what the jobs are ordered by
MOST_JOBS = 10
OF_CHANGE = ["before", "after", "change", "low", "high", "n_runs", "reason"]
OF_SCORE = {  # columns of jobs.what_if_pairs, by the score that stands there
    "n": "n_pairs",
    "n_groups": "n_jobs",
    "mean_measured": "mean_measured",
    "mean_predicted": "mean_predicted",
    "mae": "mae_log_model",
    "mae_no_change": "mae_log_no_change",
    "mae_mean_change": "mae_log_mean_change",
    "correlation": "correlation",
    "reason": "reason",
}


def answer_figures(answer: ChangeAnswer, params: WhatIfParams) -> dict[str, Any]:
    """One tree of plain values. changes: by measure; moves: by normalisation, of runs and of jobs, as counts
    [before][after]; pairs: None with pairs_reason where nothing was measured."""
    outcome, measured = answer.outcome, answer.measured
    price = {"per_token_hour": params.price_per_token_hour, "currency": params.currency, "date": params.price_date}
    changes = {str(name): row for name, row in outcome.changes.to_dict("index").items()}
    figures: dict[str, Any] = {
        "scenario": answer.scenario.name,
        "edits": str(answer.scenario),
        "features": outcome.features,
        "n_runs": len(outcome.before),
        "changes": {name: {"words": MEASURES[name], **row} for name, row in changes.items()},
        "price": price,
        "moves": {
            kind: {
                of: {"counts": migration.counts.tolist(), "n": migration.n, "share_moved": migration.share_moved}
                for of, migration in (("runs", moves.runs), ("jobs", moves.groups))
            }
            for kind, moves in outcome.moves.items()
        },
        "moves_in_words": {kind: moves.words for kind, moves in outcome.moves.items()},
        "placement": asdict(answer.placement),
        "support": asdict(outcome.support),
        "pairs": None,
        "pairs_reason": answer.reason,
        "can": answer.claims.can,
        "cannot": answer.claims.cannot,
    }
    if measured is not None:
        figures["pairs"] = {"what_if": measured.what_if, "score": asdict(measured.score)}
        figures["pairs"] |= {"overall": measured.overall.to_dict("index"), "noise": asdict(answer.noise)}
    plain: dict[str, Any] = _value(figures)
    return plain


def most_helped(outcome: ChangeOutcome) -> list[dict[str, Any]]:
    """Jobs by how much their 95th percentile falls, in seconds."""
    helped = changes_by_group(outcome).sort_values(BY, kind="stable").head(MOST_JOBS).reset_index()
    return [_value(row) for row in helped.to_dict("records")]


def write_answer(warehouse: Warehouse, source: str, model_id: str, answer: ChangeAnswer, params: WhatIfParams) -> None:
    """Replace what the tables say of this scenario and source, in one transaction; twice changes nothing."""
    key = {"source": source, "scenario": answer.scenario.name}
    changes, all_moves = answer.outcome.changes.reset_index(), answer.outcome.moves.items()
    parameters = json_of(params.model_dump(mode="json"))
    changes = changes[["measure", *OF_CHANGE]].assign(n_jobs=changes["n_groups"])
    moves = []
    for kind, shape_moves in all_moves:
        runs, jobs, shares = shape_moves.runs.counts, shape_moves.groups.counts, shape_moves.groups.shares
        at = np.argwhere((runs > 0) | (jobs > 0)).tolist()
        moves += [(kind, *pair, runs[*pair].item(), jobs[*pair].item(), shares[*pair].item()) for pair in at]
    sentences = {"can": answer.claims.can, "cannot": answer.claims.cannot}
    sentences |= {f"move_{kind}": shape_moves.words for kind, shape_moves in all_moves}
    claims = [(about, place, claim) for about, lines in sentences.items() for place, claim in enumerate(lines)]
    rows = {
        "what_ifs": changes.assign(edits=str(answer.scenario), parameters=parameters),
        "what_if_moves": pd.DataFrame(moves, columns=["kind", "from_shape", "to_shape", "n_runs", "n_jobs", "share"]),
        "what_if_pairs": pd.DataFrame([_pair_row(answer)]),
        "what_if_claims": pd.DataFrame(claims, columns=["about", "place", "claim"]),
    }
    replace_rows(warehouse, "jobs", key | {"model_id": model_id}, rows, within=tuple(key))


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _value(inner) for name, inner in value.items()}
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _pair_row(answer: ChangeAnswer) -> dict[str, Any]:
    if answer.measured is None:
        return {"n_pairs": 0, "n_jobs": 0, "reason": answer.reason}
    score = answer.measured.score
    right, usual = score.directions, score.directions_mean_change
    return {column: getattr(score, name) for name, column in OF_SCORE.items()} | {
        "right_share": right.share if right else None,
        "low": right.low if right else None,
        "high": right.high if right else None,
        "right_share_mean_change": usual.share if usual else None,
        "mae_log_noise": answer.noise.mean_absolute,
    }
