"""What-if questions answered by a trained model: on held-out runs or the next run of a job, and on matched pairs."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.errors import NotFound
from tasks.jobs.control.claims import Claims, make_claims
from tasks.jobs.control.comparisons import Comparison, Noise, compare, noise_of
from tasks.jobs.control.conditions import describe_conditions, unlike_conditions
from tasks.jobs.control.edits import apply, changed_columns
from tasks.jobs.control.measured_words import describe_noise, describe_overall
from tasks.jobs.control.named import Named
from tasks.jobs.control.outcomes import Outcome, ShapeModel, assess
from tasks.jobs.control.pair_scores import PairScore, score_pairs
from tasks.jobs.control.pairs import Pairs, match_pairs, predicted_change
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.control.placement import Placement, describe_placement, fit_placement
from tasks.jobs.control.scenarios import Scenario, named_scenario
from tasks.jobs.control.shape_table import shape_table
from tasks.jobs.control.subjects import (
    Subjects,
    held_out_residuals,
    held_out_rows,
    leaves_of,
    make_subjects,
    training_rows,
)
from tasks.jobs.predict.feature_words import feature_of
from tasks.jobs.predict.own_runs import Ints
from tasks.jobs.predict.predicting import next_conditions
from tasks.jobs.predict.preparation import with_ends
from tasks.jobs.predict.trained import Trained
from tasks.jobs.shape_params import Kind

RECORDED: tuple[Named, ...] = ("no_spare", "newest_sku", "steady_load")  # what_if of the matched pairs


@dataclass(frozen=True)
class Ground:
    """All that questions to one log have in common, made once.

    subjects: the rows that a change is tried on; training: (m, p) features of rows that the model learnt from;
    runs: all runs, those done again with a change among them; past: those of the log; bins: (n_past,)."""

    trained: Trained
    subjects: Subjects
    training: pd.DataFrame
    runs: pd.DataFrame
    past: pd.DataFrame
    bins: Ints
    pairs: Pairs
    models: Mapping[Kind, ShapeModel]
    job: str | None


@dataclass(frozen=True)
class Measured:
    """The change on its matched pairs. told: the score if the model is told under which load each changed run was
    submitted; conditions: of `unlike_conditions`; noise: of two runs that nothing sets apart on purpose."""

    comparison: Comparison
    told: PairScore
    conditions: pd.DataFrame
    noise: Noise


@dataclass(frozen=True)
class Answer:
    """outcome: what is predicted; measured: None with a reason where no run was done again with this change."""

    scenario: Scenario
    outcome: Outcome
    placement: Placement
    measured: Measured | None
    reason: str | None
    claims: Claims


def make_ground(trained: Trained, runs: pd.DataFrame, params: WhatIfParams, *, job: str | None = None) -> Ground:
    """runs: of read_runs(with_what_ifs=True). Held-out runs, at most params.max_support_rows evenly over time; with
    `job` its next run, under what was known before each of its last runs.

    Raises BadInput without a held-out run, NotFound for a job without finished runs."""
    runs = with_ends(runs)
    what_if = runs["what_if"] if "what_if" in runs else pd.Series(None, index=runs.index, dtype=object)
    past = runs[what_if.isna()].reset_index(drop=True)
    if job is None:
        rows = held_out_rows(trained, past, params.max_support_rows)
    else:
        if not (past["group_key"] == job).any():
            raise NotFound(f"job {job!r}: no finished run with a runtime; ask about another job")
        rows = next_conditions(past)
        rows = rows[rows["group_key"] == job]
    known = training_rows(trained, past, params.max_support_rows)
    rows = rows.sort_values(["submitted_at", "run_id"], kind="stable").reset_index(drop=True)
    bins, placement = trained.bins_of(past), fit_placement(past, held_out_residuals(trained, past))
    subjects = make_subjects(trained, rows, past, bins, placement)
    models = {
        kind: ShapeModel(classifier.predict_proba, shape_table(trained.shapes[kind]))
        for kind, classifier in trained.classifiers.items()
    }
    pairs = match_pairs(runs)
    return Ground(trained, subjects, trained.features(known, past), runs, past, bins, pairs, models, job)


def answer(ground: Ground, scenario: Scenario, params: WhatIfParams, rng: np.random.Generator) -> Answer:
    """What is predicted to follow from a change, and what was measured of it, if it was.

    Raises BadInput if the log does not have what the scenario changes."""
    asked, trained = ground.subjects, ground.trained
    outcome = assess(
        scenario,
        asked.features,
        asked.predict,
        asked.runs["group_key"].to_numpy(),
        asked.medians_s,
        params,
        rng,
        models=ground.models,
        training=ground.training,
        leaves=lambda frame: leaves_of(trained, frame),
    )
    measured, reason = _measured(ground, scenario, params, rng)
    score = measured.comparison.score if measured else None
    claims = make_claims(
        outcome.changes,
        params,
        support=outcome.support,
        companions=outcome.companions,
        score=score,
        told=measured.told if measured else None,
    )
    moves_vertices = any(name.startswith("vertex_share_") for name in outcome.features)
    can = claims.can + (describe_placement(asked.placement, asked.features) if moves_vertices else [])
    cannot = list(claims.cannot)
    if measured is not None:
        overall = describe_overall(measured.comparison.overall)
        can += overall.can
        cannot += overall.cannot + describe_conditions(measured.conditions) + describe_noise(measured.noise)
    return Answer(scenario, outcome, asked.placement, measured, reason, Claims(can, cannot))


def recorded_as(scenario: Scenario, params: WhatIfParams) -> Named | None:
    """The recorded what-if that makes the same changes, however it was asked for."""
    return next((name for name in RECORDED if named_scenario(name, params).edits == scenario.edits), None)


def _measured(
    ground: Ground, scenario: Scenario, params: WhatIfParams, rng: np.random.Generator
) -> tuple[Measured | None, str | None]:
    what_if = recorded_as(scenario, params)
    if what_if is None:
        return None, f"runs were done again with {', '.join(RECORDED)} only, if at all"
    pairs = ground.pairs.of(what_if)
    if ground.job is not None:
        pairs = pairs[pairs["group_key"] == ground.job].reset_index(drop=True)
    if pairs.empty:
        return None, ground.pairs.reason or f"no run was done again with {what_if}"
    before, after = (
        make_subjects(
            ground.trained,
            ground.runs.iloc[pairs[row].to_numpy()].reset_index(drop=True),
            ground.past,
            ground.bins,
            ground.subjects.placement,
        )
        for row in ("row_before", "row_after")
    )
    # in order of submission, as the changes of offers need it
    edited = apply(scenario, before.features.loc[before.runs["submitted_at"].sort_values(kind="stable").index])
    edited = edited.loc[before.features.index]
    was = before.predict(before.features)
    comparison = compare(pairs, was, before.predict(edited), before.medians_s, what_if, params, rng)
    knowing = predicted_change(was, before.predict(_under(after.features, before.features, edited))).log_ratio
    told = score_pairs(pairs["log_ratio"], knowing, pairs["group_key"].to_numpy(), params, rng)
    conditions = unlike_conditions(before.features, edited, after.features, ground.training, params)
    return Measured(comparison, told, conditions, noise_of(ground.pairs)), None


def _under(met: pd.DataFrame, before: pd.DataFrame, edited: pd.DataFrame) -> pd.DataFrame:
    """The features of the changed runs with the change made in them, but under the load that they really met."""
    made = [name for name in changed_columns(before, edited) if feature_of(name).kind != "environment"]
    return met.assign(**{name: edited[name] for name in made})
