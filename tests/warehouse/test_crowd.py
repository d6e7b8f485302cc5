"""Many readers beside writers that never pause: nobody fails, nobody starves."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("crowd.py")


def crowd(warehouse, n_readers, n_writers, seconds):
    command = [sys.executable, str(PROGRAM), str(warehouse.home), str(n_readers), str(n_writers), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return json.loads(done.stdout)


def test_readers_beside_a_writer_for_some_seconds(warehouse):
    found = crowd(warehouse, 4, 1, 2)
    assert found["readers"]["faults"] == found["writers"]["faults"] == []
    assert min(found["readers"]["served"] + found["writers"]["served"]) >= 1


@pytest.mark.slow
def test_ten_readers_beside_one_writer_for_a_minute(warehouse):
    found = crowd(warehouse, 10, 1, 60)
    assert found["readers"]["faults"] == found["writers"]["faults"] == []
    assert min(found["readers"]["served"] + found["writers"]["served"]) >= 5


@pytest.mark.slow
def test_one_reader_and_one_more_writer_beside_two_writers_that_never_pause(warehouse):
    """The rare one must get in between those that take the lock again at once."""
    found = crowd(warehouse, 1, 3, 30)
    assert found["readers"]["faults"] == found["writers"]["faults"] == []
    assert min(found["readers"]["served"] + found["writers"]["served"]) >= 5
