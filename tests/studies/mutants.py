"""Small faults that a user would feel, one at a time in the shared rooms, and whether the tests of the room tell.

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
    Mutant("an equally good model replaces the present one", "tasks/warehouse/registry.py",
           "new < old if", "new <= old if", "tests/warehouse/test_registry.py"),
    Mutant("the highest error is marked as the best", "tasks/warehouse/runs.py",
           "(min if words[-1] in LOWER", "(max if words[-1] in LOWER", "tests/warehouse/test_runs.py"),
    Mutant("a restored backup may have changed", "tasks/warehouse/copies.py",
           "or sha256_of(str(path)) != sha256", "", "tests/warehouse/test_copies.py"),
    Mutant("an older export replaces a finished run", "tasks/warehouse/ingest.py",
           "(new.settled, new.ordered_at, new.batch_id) > (old.settled, old.ordered_at, old.batch_id)",
           "(new.ordered_at, new.batch_id) > (old.ordered_at, old.batch_id)", "tests/warehouse/test_ingest.py"),
    Mutant("one refused row more than allowed is loaded", "tasks/intake/tally.py",
           "self.n_faulty <= max_refused_share * self.n_read", "self.n_faulty <= max_refused_share * self.n_read + 1",
           "tests/intake/test_tally.py tests/warehouse/test_landing.py"),
    Mutant("pseudonyms can be tried out", "tasks/intake/pseudonyms.py",
           "key=key, person", "key=b'', person", "tests/intake/test_pseudonyms.py"),
    Mutant("a bomb is unpacked", "tasks/intake/files.py",
           "self.limits.max_ratio * n_packed", "self.n_bytes + n_packed", "tests/intake/test_files.py"),
    Mutant("pages beside the site can be read", "flows/engine/serving.py",
           "path.is_relative_to(folder.resolve()) and ", "", "tests/flows/engine/test_serving.py"),
    Mutant("a key that others may read is used", "flows/engine/servers.py",
           "if path.stat().st_mode & OTHERS:", "if False:", "tests/flows/engine/test_servers.py"),
    Mutant("the load of whorl serve hides foreign work", "tasks/machine.py",
           "if found and found.is_shared else 0.0", "if found else 0.0", "tests/test_machine.py"),
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
    try:
        told = subprocess.run(
            command, cwd=place, env=os.environ | {"PYTHONPATH": str(place)}, capture_output=True, timeout=LIMIT_S
        )
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
