"""One recording at a time on a machine, whichever word it is for."""

import subprocess
import sys
from pathlib import Path

import pytest

from tasks.errors import BadSetting
from tasks.machine_lock import only_recorder

HOLDER = """
import sys
from pathlib import Path
from tasks.machine_lock import only_recorder
with only_recorder("workloads", Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "lock"


@pytest.fixture
def holder(lock):
    root = Path(__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_a_second_recorder_is_told_who_holds_the_machine(lock, holder):
    told = rf"another recording of workloads is at work \(process {holder.pid}\); wait for its end"
    with pytest.raises(BadSetting, match=told):
        with only_recorder("nodes", lock):
            pass


def test_the_lock_ends_with_its_holder_however_that_ends(lock, holder):
    holder.kill()
    holder.wait()
    with only_recorder("nodes", lock):
        pass


def test_one_that_may_wait_gets_its_turn(lock, holder):
    holder.kill()
    with only_recorder("nodes", lock, wait_s=30):
        assert lock.read_text().startswith("nodes ")


def test_after_the_end_the_machine_is_free(lock):
    with only_recorder("nodes", lock):
        with pytest.raises(BadSetting, match="another recording of nodes"):
            with only_recorder("jobs", lock):
                pass
    with only_recorder("jobs", lock):
        pass


def test_a_lock_file_that_nobody_signed_is_still_a_lock(lock):
    import fcntl

    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(BadSetting, match="another recording of nodes is at work; wait"):
            with only_recorder("nodes", lock):
                pass
