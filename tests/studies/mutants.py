"""Small faults that a user would feel, one at a time in the shared rooms and the words, and whether their tests tell.

    python -m tests.studies.mutants [NUMBER...]

Each is tried in a copy of the project; the tests that stand beside it should fail. Prints a line a mutant, and exits
with the number of those that nobody noticed."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
COPIED = ("flows", "tasks", "tests", "conf", "deployments", "data/recorded", "pyproject.toml", "README.md")
LIMIT_S = 1800


class Mutant(NamedTuple):
    """What is wrong: in this file `old` became `new`. tests: files that should tell."""

    fault: str
    file: str
    old: str
    new: str
    tests: str


# fmt: off
MUTANTS = (
    Mutant("one model too few is kept", "tasks/warehouse/pruning.py",
           "len(cards) - n_kept)", "len(cards) - n_kept + 1)", "tests/warehouse/test_pruning.py"),
    Mutant("a champion is pruned", "tasks/warehouse/pruning.py",
           "if card.model_id not in champions]", "]", "tests/warehouse/test_pruning.py"),
    Mutant("a busy warehouse has the exit code of a wrong setting", "tasks/errors.py",
           "exit_code = 5", "exit_code = 2", "tests/warehouse/test_lock.py tests/flows/cli/test_app.py"),
    Mutant("the lock is not released while a child lives", "tasks/warehouse/lock.py",
           "        if os.getpid() == owner:\n", "        if False:\n", "tests/warehouse/test_lock.py"),
    Mutant("a reader takes the lock for itself", "tasks/warehouse/lock.py",
           '"shared": fcntl.LOCK_SH', '"shared": fcntl.LOCK_EX', "tests/warehouse/test_lock.py"),
    Mutant("aliases of columns are ignored", "tasks/jobs/readers/table.py",
           "(key_of(ours), *ALIASES.get(ours, ()))", "(key_of(ours),)", "tests/jobs/readers/test_exports.py"),
    Mutant("a step's key does not see the code", "flows/engine/steps.py",
           "INPUTS + RUN_ID + SameCode()", "INPUTS + RUN_ID", "tests/flows/engine/test_steps.py"),
    Mutant("a wrong file is tried again", "flows/engine/steps.py",
           "and not isinstance(error, FOR_GOOD)", "", "tests/flows/engine/test_steps.py"),
    Mutant("the environment loses against files", "tasks/settings.py",
           "joined[key] = value\n", "joined.setdefault(key, value)\n", "tests/test_settings.py"),
    Mutant("a rollback brings back the present model", "tasks/warehouse/registry.py",
           "reigns[-2])", "reigns[-1])", "tests/warehouse/test_registry.py"),
    Mutant("an equally good model replaces the present one", "tasks/workloads/training.py",
           "(new_score == score and knows_no_more)", "False", "tests/workloads/test_steps.py"),
    Mutant("the highest error is marked as the best", "tasks/warehouse/runs.py",
           "(min if words[-1] in LOWER", "(max if words[-1] in LOWER", "tests/warehouse/test_runs.py"),
    Mutant("a restored backup may have changed", "tasks/warehouse/copies.py",
           "or sha256_of(str(path)) != sha256", "", "tests/warehouse/test_copies.py"),
    Mutant("an older export replaces a finished run", "tasks/warehouse/ingest.py",
           "(new.settled, new.ordered_at, new.batch_id) > (old.settled, old.ordered_at, old.batch_id)",
           "(new.ordered_at, new.batch_id) > (old.ordered_at, old.batch_id)", "tests/warehouse/test_ingest.py"),
    Mutant("one refused row more than allowed is loaded", "tasks/intake/files.py",
           "self.n_faulty <= max_refused_share * self.n_read", "self.n_faulty <= max_refused_share * self.n_read + 1",
           "tests/intake/test_files.py tests/warehouse/test_landing.py"),
    Mutant("pseudonyms can be tried out", "tasks/intake/pseudonyms.py",
           "key=key, person", "key=b'', person", "tests/intake/test_pseudonyms.py"),
    Mutant("a bomb is unpacked", "tasks/intake/files.py",
           "self.limits.max_ratio * n_packed", "self.n_bytes + n_packed", "tests/intake/test_files.py"),
    Mutant("pages beside the site can be read", "flows/engine/serving.py",
           "path.is_relative_to(folder.resolve()) and ", "", "tests/flows/engine/test_serving.py"),
    Mutant("a key that others may read is used", "tasks/storage.py",
           "(stat.S_IRWXG | stat.S_IRWXO)", "0", "tests/flows/engine/test_servers.py"),
    Mutant("the load of whorl serve hides foreign work", "tasks/record/facts.py",
           "if server and server.is_shared else 0.0", "if server else 0.0", "tests/record/test_facts.py"),
    Mutant("executions without a flag need not be in a row to clear an alarm", "tasks/nodes/detect/alarms.py",
           "(0, n_fresh + 1) if flagged", "(n_clean, n_fresh + 1) if flagged", "tests/nodes/detect/test_alarms.py"),
    Mutant("an execution is part of its own recent past", "tasks/nodes/detect/deviations.py",
           "np.arange(1, length + 1)", "np.arange(length)", "tests/nodes/detect/test_deviations.py"),
    Mutant("the scores for a threshold are of what was learned from", "tasks/nodes/detect/detector.py",
           "is_learned & (stretch != number)", "is_learned & (stretch >= 0)", "tests/nodes/detect/test_detector.py"),
    Mutant("a latency below the last digit is the worst there is", "tasks/nodes/ranking/node_scores.py",
           " & (table.orientation > 0) & (usable > 0)", " & (usable > 0)", "tests/nodes/ranking/test_node_scores.py"),
    Mutant("ties go on from node to node", "tasks/nodes/ranking/places.py",
           "is_tie(draws[first], draws[at])", "is_tie(draws[at - 1], draws[at])",
           "tests/nodes/ranking/test_places.py"),
    Mutant("the KB of an old fio are 1,000 bytes", "tasks/nodes/tools/fio.py",
           'f"{in_binary(match[2]) if is_old else match[2]}{per}"', 'f"{match[2]}{per}"',
           "tests/nodes/tools/test_parsing.py"),
    Mutant("tested executions teach the scales", "tasks/nodes/preprocess/fitting.py",
           "fit(history if is_train.all() else history.where(is_train), params)", "fit(history, params)",
           "tests/nodes/test_type_tables.py"),
    Mutant("a threshold is chosen on tested executions", "tasks/nodes/evaluate/detection.py",
           "may_choose = case.is_validation | case.is_train", "may_choose = np.ones(len(scores), dtype=bool)",
           "tests/nodes/evaluate/test_detection.py"),
    Mutant("the confidence in a known group is that it is unknown", "tasks/workloads/identify/identification.py",
           "(Present(workload, 1.0, 1 - rest),)", "(Present(workload, 1.0, rest),)",
           "tests/workloads/identify/test_identification.py"),
    Mutant("the name of an interpreter proves a workload", "tasks/workloads/identify/programs.py",
           "if program not in INTERPRETERS", "if program", "tests/workloads/identify/test_programs.py"),
    Mutant("the share that others take is in cores", "tasks/workloads/identify/identification.py",
           "max(0.0, busy - own) / whole if", "max(0.0, busy - own) if",
           "tests/workloads/identify/test_identification.py"),
    Mutant("neighbouring windows are learned from and held out", "tasks/workloads/identify/model.py",
           "rank * n_folds // len(places)", "rank % n_folds", "tests/workloads/identify/test_model.py"),
    Mutant("distances are taken along the wrong axis", "tasks/workloads/identify/fingerprints.py",
           "logs @ self.whitening - self.whitened", "logs @ self.whitening.T - self.whitened",
           "tests/workloads/identify/test_fingerprints.py"),
    Mutant("a change is earlier where samples are missing before it", "tasks/workloads/changepoints/finding.py",
           "ChangePoints(len(table), rows[changes], near", "ChangePoints(len(table), changes, near",
           "tests/workloads/changepoints/test_finding.py"),
    Mutant("a change near the last row of its window does not count", "tasks/workloads/changepoints/online.py",
           "np.minimum(changes + near + 1, len(probabilities))", "np.minimum(changes + near, len(probabilities))",
           "tests/workloads/changepoints/test_online.py"),
    Mutant("counts of an interval are told as rates", "tasks/workloads/record/sampler.py",
           "np.array(list(whole.values())) / between_s", "np.array(list(whole.values()))",
           "tests/workloads/record/test_sampler.py"),
    Mutant("a run is at distance 0 of its workload", "tasks/workloads/evaluate/distances.py",
           "np.triu_indices(len(inner), k=1)", "np.triu_indices(len(inner), k=0)",
           "tests/workloads/evaluate/test_distances.py"),
    Mutant("a run knows one that ends when it is submitted", "tasks/jobs/predict/peers.py",
           "np.searchsorted(times, at))", 'np.searchsorted(times, at, "right"))', "tests/jobs/predict/test_peers.py"),
    Mutant("the usual runtime of a job is a mean", "tasks/jobs/predict/predicting.py",
           'usual_s=("runtime_s", "median")', 'usual_s=("runtime_s", "mean")', "tests/jobs/predict/test_predicting.py"),
    Mutant("days are hours where jobs stop", "tasks/jobs/watch.py",
           "int(params.look_back_days * 86_400)", "int(params.look_back_days * 3_600)", "tests/jobs/test_watch.py"),
    Mutant("causes explain the jobs that they were fitted on", "tasks/jobs/explain/variance.py",
           "np.linalg.lstsq(features[~is_out], log_runtimes[~is_out]", "np.linalg.lstsq(features, log_runtimes",
           "tests/jobs/explain/test_variance.py"),
    Mutant("the model is better where it is worse than no change", "tasks/jobs/control/pairs.py",
           "versus_no_change=bootstrap_difference(error, none", "versus_no_change=bootstrap_difference(none, error",
           "tests/jobs/control/test_pairs.py"),
    Mutant("a token-second costs as much as a token-hour", "tasks/jobs/control/effects.py",
           "token_s / SECONDS_PER_HOUR *", "token_s *", "tests/jobs/control/test_effects.py"),
    Mutant("later runs are part of a historic median", "tasks/jobs/characterise.py",
           "WHERE part = 0 {of_batch}", "WHERE true {of_batch}", "tests/jobs/test_characterise.py"),
    Mutant("a time limit in minutes is one in seconds", "tasks/jobs/readers/slurm.py",
           'values["limit_raw_min"] * 60', 'values["limit_raw_min"]', "tests/jobs/readers/test_slurm.py"),
    Mutant("a run that missed the deadline is the one to beat", "tasks/advice/search.py",
           "valid = self.is_valid(runs.candidate, runs.log_cost, runs.is_completed)", "valid = runs.is_completed",
           "tests/advice/test_search.py"),
    Mutant("an interval holds fewer than it says", "tasks/advice/estimate.py",
           "(len(values) + 1) * confidence", "len(values) * confidence", "tests/advice/test_estimate.py"),
    Mutant("a machine between two groups leaves nothing open", "tasks/advice/groups.py",
           "len(self.groups) == 1 or bool(self.doubts) or self", "len(self.groups) == 1 or self",
           "tests/advice/test_groups.py"),
    Mutant("runs that failed are forgotten where memory is the same", "tasks/advice/choice.py",
           "target.memory_bytes <= source.memory_bytes:", "target.memory_bytes < source.memory_bytes:",
           "tests/advice/test_choice.py"),
    Mutant("the share of unknown runs is that of the first answers", "flows/engine/serving.py",
           "ORDER BY identified_at DESC,", "ORDER BY identified_at,", "tests/report/test_site.py"),
    Mutant("a page shows the figures of a model that is not in use", "tasks/report/jobs.py",
           "ORDER BY in_use.model_id IS NULL,", "ORDER BY in_use.model_id IS NOT NULL,", "tests/report/test_jobs.py"),
)
# fmt: on


def is_noticed(mutant: Mutant, place: Path) -> bool:
    """Whether the tests of a mutant fail in this copy, which is as before then. Raises ValueError for no such place."""
    file = place / mutant.file
    text = file.read_text()
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.file}: {mutant.old!r} stands there {text.count(mutant.old)} times; expected once")
    file.write_text(text.replace(mutant.old, mutant.new))
    command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", "-m", "not slow", *mutant.tests.split()]
    quiet, env = subprocess.DEVNULL, os.environ | {"PYTHONPATH": str(place)}  # a pipe would wait for what lives on
    try:
        told = subprocess.run(command, cwd=place, env=env, stdout=quiet, stderr=quiet, timeout=LIMIT_S)
    finally:
        file.write_text(text)
    return told.returncode == 1  # tests failed; other codes say that none ran


def main(numbers: list[int]) -> int:
    """Try these mutants, or all; returns how many nobody noticed."""
    n_missed = 0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "whorl"
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            copy(ROOT / name, place / name)
        for number in numbers or range(len(MUTANTS)):
            noticed = is_noticed(MUTANTS[number], place)
            n_missed += not noticed
            print(f"{number:>2}  {'noticed' if noticed else 'MISSED '}  {MUTANTS[number].fault}", flush=True)
    print(f"{n_missed} missed")
    return n_missed


if __name__ == "__main__":
    sys.exit(main([int(argument) for argument in sys.argv[1:]]))
