"""The predictor on logs with known truth: it leans on what tells the runtime, and is never far from the best of it."""

import json

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.predict.mixture import LEVELS, N_CLASSES, N_LEVELS, order_quantiles
from tasks.jobs.predict.peers import JOB, histories, peer_features, peers_of
from tasks.jobs.predict.predictor import (
    BOOSTED,
    MAIN,
    TREES,
    Boosted,
    Predictor,
    empirical_of,
    fit_boosted,
    fit_predictor,
)

START = pd.Timestamp("2026-01-01")
PARAMS = {"n_trees": 12, "seed": 0}
MINUTE = 60.0
HISTORY = ("job", "job, last 30", "job, last 4")


def log_of(runtime_s, jobs="job", **columns):
    """A run a minute, each ended before the next is submitted as far as it takes less."""
    runtime_s = np.asarray(runtime_s, dtype=float)
    submitted_at = START + pd.to_timedelta(MINUTE * np.arange(len(runtime_s)), unit="s")
    return pd.DataFrame(
        {
            "group_key": jobs,
            "submitted_at": submitted_at,
            "ended_at": submitted_at + pd.to_timedelta(np.minimum(runtime_s, 1e8), unit="s"),
            "runtime_s": runtime_s,
            **columns,
        }
    )


def features_of(runs, past, *columns):
    """Peers' figures, and columns as they are."""
    known = {name: runs[name].to_numpy(dtype=float) for name in columns}
    return pd.DataFrame({**known, **peer_features(runs, peers_of(runs, past))}, index=runs.index)


class Split:
    """A log, a predictor of its first part and the distributions of the rest."""

    def __init__(self, runs, *columns, share=0.75, n_trees=40):
        self.runs, self.n = runs, int(share * len(runs))
        self.features, self.known = features_of(runs, runs, *columns), histories(peers_of(runs, runs))
        old = slice(0, self.n)
        self.model, self.tried = fit_predictor(
            self.features[old], self.known.rows(old), runs[old], n_trees=n_trees, seed=0
        )
        self.runtime_s = runs["runtime_s"].to_numpy()[self.n :]
        self.predicted = self.model.predict(self.features[self.n :], self.known.rows(slice(self.n, None)))

    @property
    def crps(self):
        return self.predicted.crps(self.runtime_s).mean()

    def crps_of_history(self, most=50):
        """That of the job's last runs by the (n + 1) rule."""
        latest = self.known.log_s[JOB][self.n :, :most]
        return empirical_of(order_quantiles(latest)).crps(self.runtime_s).mean()

    def crps_of_all(self):
        """That of the quantiles of all earlier runs."""
        logs = np.log(self.runs["runtime_s"].to_numpy()[: self.n])
        return empirical_of(np.tile(np.quantile(logs, LEVELS), (len(self.runtime_s), 1))).crps(self.runtime_s).mean()

    def coverage(self):
        """Of the 90 % intervals."""
        low, high = self.predicted.quantile(np.broadcast_to([0.05, 0.95], (len(self.runtime_s), 2))).T
        return ((self.runtime_s >= low) & (self.runtime_s <= high)).mean()


def weight(model, *parts, of_class=N_CLASSES - 1):
    """Of jobs with many runs, unless another class of support is asked."""
    return sum(model.weights[part][of_class] for part in parts if part in model.weights)


def test_where_history_is_all_there_is_it_gets_the_weight_and_nothing_is_lost():
    rng = np.random.default_rng(0)
    jobs = rng.integers(0, 40, 2_400)
    runs = log_of(np.exp(rng.normal(0, 1.0, 40))[jobs] * np.exp(rng.normal(0, 0.3, 2_400)), [f"j{i}" for i in jobs])
    split = Split(runs)
    assert weight(split.model, *HISTORY) + weight(split.model, BOOSTED) == pytest.approx(1)
    assert split.crps <= 1.03 * split.crps_of_history()
    assert split.coverage() == pytest.approx(0.9, abs=0.04)


def test_where_a_feature_says_all_the_trees_get_the_weight():
    rng = np.random.default_rng(1)
    size = np.exp(rng.normal(0, 1.5, 2_000))
    runs = log_of(5 * size * np.exp(rng.normal(0, 0.05, 2_000)), size=size)
    split = Split(runs, "size", n_trees=100)
    assert weight(split.model, BOOSTED) > 0.9
    assert split.crps < 0.4 * split.crps_of_history()


def test_where_the_request_of_a_user_says_all_its_runs_are_leant_on():
    rng = np.random.default_rng(2)
    n = 2_400
    users, cpus = rng.integers(0, 12, n), 2 ** rng.integers(0, 4, n)
    usual_s = np.exp(rng.normal(1, 1.5, (12, 9)))[users, cpus]
    runs = log_of(usual_s * np.exp(rng.normal(0, 0.1, n)), [f"only{i}" for i in range(n)])
    runs = runs.assign(user_name=[f"u{i}" for i in users], requested_cpus=cpus)
    split = Split(runs)
    # all others: no job runs twice, so the trees stand in for its runs
    assert weight(split.model, "request", of_class=0) < 0.05
    latest = split.known.log_s["user_request"][split.n :, :10]
    assert split.crps <= 1.03 * empirical_of(order_quantiles(latest)).crps(split.runtime_s).mean()


def test_quantiles_are_averaged_at_the_ends_where_the_parts_are_of_one_kind_and_not_where_jobs_have_two_modes():
    """Of jobs that drift each part tells about the same, more or less late; of two modes the last runs may lack one."""
    rng = np.random.default_rng(0)
    jobs = rng.integers(0, 20, 2_000)
    names = [f"j{i}" for i in jobs]
    drift = np.cumsum(0.05 * rng.normal(size=2_000))
    drifting = Split(log_of(np.exp(2 + drift + 0.1 * jobs + 0.3 * rng.normal(size=2_000)), names))
    of_two_modes = Split(log_of(np.where(rng.random(2_000) < 0.4, 5.0, 500.0) * (1 + 0.2 * jobs), names))
    assert (drifting.model.ends, of_two_modes.model.ends) == (0.5, 0.0)
    assert drifting.coverage() == pytest.approx(0.9, abs=0.04)


def test_jobs_that_take_no_time_do_not_spoil_the_intervals_of_others():
    """Parts that say 0 s in different small numbers made all runs of such jobs look well inside their intervals."""
    rng = np.random.default_rng(0)
    jobs = rng.integers(0, 10, 600)
    runtime_s = np.where(jobs < 5, 0.0, np.round(np.exp(3 + 0.4 * rng.normal(size=600))))
    split = Split(log_of(runtime_s, [f"j{i}" for i in jobs]), share=0.8)
    assert split.crps <= 1.05 * split.crps_of_history()


def test_from_columns_of_ones_own_more_is_learnt_by_three_times_as_many_trees():
    """30 configurations in no order, 20 runs each: with 20 runs a leaf no tree tells one from its neighbours."""
    rng = np.random.default_rng(11)
    part = rng.permutation(np.repeat(np.arange(30), 20))
    runs = log_of(np.exp(rng.normal(3, 1, 30)[part] + rng.normal(0, 0.05, 600)), part=part, own_part=part)
    plain, own = Split(runs, "part"), Split(runs, "own_part")
    assert own.crps < 0.95 * plain.crps
    assert own.model.boosted.boosters[0].num_trees() == 3 * plain.model.boosted.boosters[0].num_trees()


def test_jobs_with_few_runs_have_weights_of_their_own():
    """Half of the runs are of steady jobs, the others of jobs that run once and take as long as a feature says."""
    rng = np.random.default_rng(9)
    n = 4_000
    is_steady, size = np.arange(n) % 2 == 0, np.exp(rng.normal(0, 1, n))
    steady_s = np.exp(rng.normal(2, 1, 20))[np.arange(n) // 2 % 20] * np.exp(rng.normal(0, 0.1, n))
    runtime_s = np.where(is_steady, steady_s, 8 * size * np.exp(rng.normal(0, 0.1, n)))
    jobs = np.where(is_steady, [f"j{i // 2 % 20}" for i in range(n)], [f"once{i}" for i in range(n)])
    split = Split(log_of(runtime_s, jobs, size=size), "size")
    assert weight(split.model, *HISTORY) > 0.5
    assert split.crps < 0.7 * split.crps_of_all()


def test_where_the_level_shifts_half_way_the_last_runs_are_followed():
    rng = np.random.default_rng(3)
    level = np.where(np.arange(2_000) < 1_000, 2.0, 20.0)
    runs = log_of(level * np.exp(rng.normal(0, 0.2, 2_000)), [f"j{i % 10}" for i in range(2_000)])
    split = Split(runs)
    assert split.crps <= 1.1 * split.crps_of_history(10)
    assert split.predicted.quantile(0.5).min() > 10


SOUND_S = 10 * np.exp(np.random.default_rng(4).normal(0, 0.3, 2_000))
TEN_JOBS = [f"j{i % 10}" for i in range(2_000)]


@pytest.fixture(scope="module")
def sound_median_s():
    """What is predicted where no run is absurd."""
    return Split(log_of(SOUND_S, TEN_JOBS)).predicted.quantile(0.5)


@pytest.mark.parametrize("absurd_s", [1e9, 0.0])
def test_a_handful_of_absurd_runs_does_not_ruin_what_is_predicted(absurd_s, sound_median_s):
    broken, jobs = SOUND_S.copy(), TEN_JOBS
    broken[[50, 400, 900, 950, 1_200]] = absurd_s
    ruined = Split(log_of(broken, jobs))
    assert np.quantile(abs(np.log(ruined.predicted.quantile(0.5) / sound_median_s)), 0.99) < 0.25
    low, high = ruined.predicted.quantile(np.broadcast_to([0.05, 0.95], (500, 2))).T
    assert low.min() > 2
    assert np.quantile(high, 0.9) < 50  # of the last three runs that a job knows an absurd one is a third


def test_a_job_never_seen_is_predicted_from_the_others():
    rng = np.random.default_rng(5)
    runs = log_of(np.exp(rng.normal(3, 0.5, 800)), [f"j{i % 8}" for i in range(800)])
    model = Split(runs).model
    new = log_of([1.0], ["new"]).assign(submitted_at=START + pd.Timedelta(days=9))
    predicted = model.predict(features_of(new, runs), histories(peers_of(new, runs)))
    low, middle, high = predicted.quantile(np.array([[0.05, 0.5, 0.95]]))[0]
    assert middle == pytest.approx(np.exp(3), rel=0.5)
    assert low < 0.75 * np.exp(3)
    assert high > 1.5 * np.exp(3)


def test_one_run_of_another_kind_is_not_taken_for_all_that_may_come():
    rng = np.random.default_rng(11)
    jobs = np.append(np.repeat(np.arange(150), 8), [150, 150, 150])
    runtime_s = np.exp(4 + 0.02 * rng.normal(size=1_203))
    runtime_s[1_200] = 33 * 3600.0
    runs = log_of(runtime_s, [f"j{i}" for i in jobs])
    known, features = histories(peers_of(runs, runs)), features_of(runs, runs)
    model, _ = fit_predictor(features[:1_200], known.rows(slice(0, 1_200)), runs[:1_200], **PARAMS)
    known.log_s[JOB][1_201:, :2] = [[np.log(33 * 3600.0), np.nan], [np.log(33 * 3600.0), np.log(60.0)]]
    job, trees = (part[1_201:] for part in model.parts(features, known, ["job", BOOSTED]))
    half = N_LEVELS // 2
    assert (job[0, half:] == np.log(33 * 3600.0)).all()
    np.testing.assert_array_equal(job[0, :half], trees[0, :half])
    np.testing.assert_array_equal(job[1], order_quantiles(known.log_s[JOB][[1_202]])[0])


@pytest.mark.parametrize(("noise", "is_enough"), [(0.0, True), (0.5, False)], ids=["jobs never vary", "they vary"])
def test_one_run_says_all_of_its_job_only_where_jobs_hardly_vary(noise, is_enough):
    rng = np.random.default_rng(12)
    jobs = np.repeat(np.arange(400), 3)
    runs = log_of(np.exp(1 + rng.normal(size=400)[jobs] + noise * rng.normal(size=1_200)), [f"j{i}" for i in jobs])
    assert Split(runs).model.is_one_enough == is_enough


def test_limits_that_are_kept_end_every_prediction():
    rng = np.random.default_rng(6)
    limits_s = rng.choice([20.0, 60.0], 1_000)
    runs = log_of(np.minimum(np.exp(rng.normal(3, 1, 1_000)), limits_s), requested_runtime_s=limits_s, user_name="ann")
    split = Split(runs, "requested_runtime_s")
    assert split.model.grace == 1
    assert (split.predicted.quantile(0.999) <= limits_s[split.n :] * (1 + 1e-9)).all()


@pytest.mark.parametrize("n", [1, 2, 10, 60])
@pytest.mark.parametrize("runtime_s", [7.0, 0.0, 1e9])
def test_runtimes_that_are_all_alike_are_predicted_whatever_their_number(n, runtime_s):
    runs = log_of(np.full(n, runtime_s), user_name=None, requested_cpus=np.nan, requested_runtime_s=np.nan)
    features, known = features_of(runs, runs), histories(peers_of(runs, runs))
    model, tried = fit_predictor(features, known, runs, **PARAMS)
    predicted = model.predict(features, known)
    assert predicted.quantile(0.5) == pytest.approx(max(runtime_s, 1e-3))
    assert np.isfinite(predicted.crps(runs["runtime_s"].to_numpy())).all()
    assert tried.quantiles.shape == (len(tried.rows), N_LEVELS)


def test_no_run_teaches_nothing():
    runs = log_of([1.0])
    with pytest.raises(BadInput, match="training rows"):
        fit_predictor(
            features_of(runs, runs)[:0], histories(peers_of(runs, runs)).rows(slice(0, 0)), runs[:0], **PARAMS
        )


@pytest.mark.parametrize(("n", "first"), [(200, 40), (2_000, 800), (2_500, 1_500)])
def test_the_runs_that_tell_the_weights_are_at_least_1000_or_the_latest_four_fifths(n, first):
    runs = log_of(np.exp(np.random.default_rng(7).normal(0, 1, n)))
    _, tried = fit_predictor(features_of(runs, runs), histories(peers_of(runs, runs)), runs, **PARAMS)
    assert tried.rows.tolist() == list(range(first, n))


@pytest.mark.parametrize("changed", [40, 80, 120])
def test_what_is_said_of_a_run_that_tells_the_weights_is_learnt_from_earlier_ones(changed):
    runs = log_of(np.exp(np.random.default_rng(7).normal(0, 1, 200)))
    features, known = features_of(runs, runs), histories(peers_of(runs, runs))
    later = runs.assign(runtime_s=runs["runtime_s"].where(np.arange(200) < changed, 1.0))
    (_, tried), (_, again) = (fit_predictor(features, known, log, **PARAMS) for log in (runs, later))
    # the weights differ, and the trees and the histories that they mix do not
    first = changed - 40
    assert again.quantiles[first].min() == pytest.approx(tried.quantiles[first].min(), abs=0.5)


@pytest.fixture(scope="module")
def fitted():
    """A predictor of a drawn log, its features and histories."""
    rng = np.random.default_rng(8)
    runs = log_of(np.exp(rng.normal(0, 1, 400)), [f"j{i % 4}" for i in range(400)], user_name="ann")
    split = Split(runs.assign(requested_runtime_s=1e3), "requested_runtime_s")
    return split.model, split.features, split.known


def test_quantiles_ascend_and_a_row_is_predicted_alike_alone_and_among_others(fitted):
    model, features, known = fitted
    quantiles = model.quantiles(features, known)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    alone = model.quantiles(features[7:8], known.rows(slice(7, 8)))
    np.testing.assert_allclose(alone[0], quantiles[7])
    assert model.quantiles(features[:0], known.rows(slice(0, 0))).shape == (0, N_LEVELS)


def test_a_shift_moves_every_prediction_by_its_factor(fitted):
    model, features, known = fitted
    plain = model.predict(features, known).quantile(0.5)
    doubled = model.predict(features, known, shift=np.full(len(features), np.log(2))).quantile(0.5)
    np.testing.assert_allclose(doubled, 2 * plain)


def test_a_predictor_comes_back_from_its_files_with_the_same_numbers(fitted, tmp_path):
    model, features, known = fitted
    model.save(tmp_path)
    back = Predictor.load(tmp_path)
    np.testing.assert_array_equal(
        back.predict(features, known).quantile(0.9), model.predict(features, known).quantile(0.9)
    )
    np.testing.assert_array_equal(back.expected_log_s(features), model.expected_log_s(features))
    np.testing.assert_array_equal(back.recalibration.levels, model.recalibration.levels)
    np.testing.assert_array_equal(back.recalibration.moved, model.recalibration.moved)
    assert (back.weights, back.grace, back.columns) == (dict(model.weights), model.grace, model.columns)
    assert back.ends == model.ends


def without(key):
    return lambda main: {name: value for name, value in main.items() if name != key}


@pytest.mark.parametrize(
    "change",
    [
        *map(
            without,
            ("format", "weights", "is_relative", "is_one_enough", "usual_log_s", "levels", "moved", "grace", "columns"),
        ),
        *map(without, ("least_s", "ends")),
        lambda main: main | {"weights": {"oracle": [1.0] * N_CLASSES}},
        lambda main: main | {"weights": {"boosted": ["much"] * N_CLASSES}},
        lambda main: main | {"weights": {"boosted": [-1.0, 1.0, 1.0, 1.0]}},
        lambda main: main | {"weights": {"boosted": [1.0]}},
        lambda main: main | {"weights": {}},
        lambda main: main | {"format": 1},
        lambda main: main | {"levels": [1.0]},
        lambda main: main | {"ends": 2},
        lambda main: main | {"levels": [2.0] * 100},
        lambda main: main | {"columns": main["columns"][1:]},
        lambda main: [main],
    ],
)
def test_damaged_or_foreign_files_are_refused(fitted, tmp_path, change):
    fitted[0].save(tmp_path)
    file = tmp_path / MAIN
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    with pytest.raises((BadInput, OSError, ValueError, KeyError, TypeError)):
        Predictor.load(tmp_path)


SD = 0.2


@pytest.fixture(scope="module")
def step():
    """Boosted quantiles of 1 below 0.5 and 3 above, each with noise."""
    rng = np.random.default_rng(0)
    x = rng.random(3000)
    values = np.where(x > 0.5, 3.0, 1.0) + rng.normal(0, SD, 3000)
    return fit_boosted(pd.DataFrame({"x": x}), values, np.arange(1, 20) / 20, n_trees=150, seed=0)


def test_quantiles_are_ordered_and_find_a_step_with_its_noise(step):
    told = step.quantiles(pd.DataFrame({"x": [0.25, 0.75]}))
    assert told.shape == (2, N_LEVELS)
    assert (np.diff(told, axis=1) >= 0).all()
    assert told[:, 49:51].mean(axis=1) == pytest.approx([1, 3], abs=0.06)
    assert told[:, 94] - told[:, 5] == pytest.approx(np.full(2, 2 * 1.6 * SD), abs=0.25)


class Constant:
    def __init__(self, value):
        self.predict = lambda rows, num_threads: np.full(len(rows), value)


def test_between_levels_quantiles_are_interpolated_and_the_ends_go_on():
    told = Boosted(np.array([0.25, 0.75]), (Constant(4.0), Constant(2.0))).quantiles(pd.DataFrame({"x": [0.0]}))
    np.testing.assert_allclose(told[0], 2 + (LEVELS - 0.25) / 0.5 * 2)  # crossed ones are put in order


def test_no_row_has_no_quantile_and_no_training_row_is_refused(step):
    assert step.quantiles(pd.DataFrame({"x": []})).shape == (0, N_LEVELS)
    with pytest.raises(BadInput, match="training rows: none"):
        fit_boosted(pd.DataFrame({"x": []}), np.zeros(0), np.array([0.5]), n_trees=1, seed=0)


def test_models_come_back_from_their_file_with_the_same_numbers(step, tmp_path):
    step.save(tmp_path)
    asked = pd.DataFrame({"x": np.linspace(0, 1, 50)})
    np.testing.assert_array_equal(Boosted.load(tmp_path, 1).quantiles(asked), step.quantiles(asked))
    with pytest.raises(BadInput, match="1 features beside the names of 2"):
        Boosted.load(tmp_path, 2)


@pytest.mark.parametrize("change", [dict, lambda models: list(models), lambda models: {"2": models["0.5"], "3": ""}])
def test_damaged_files_are_refused(step, tmp_path, change):
    step.save(tmp_path)
    models = json.loads((tmp_path / TREES).read_text())
    (tmp_path / TREES).write_text(json.dumps(change(models) if change is not dict else {}))
    with pytest.raises((ValueError, AttributeError)):
        Boosted.load(tmp_path, 1)
