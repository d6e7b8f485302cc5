"""A place: its processes are unprivileged, join their groups, die with the recorder, and a stop leaves none."""

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tasks.errors import BadSetting
from tasks.record.processes import end_session, members, started, wait_for_end
from tasks.workloads.record.programs.program import (
    USER,
    Client,
    Command,
    Need,
    Options,
    Program,
    ProgramFailed,
    ProgramPlace,
    Stopped,
    make_place,
)

ROOT = Path(__file__).parents[3]
LIMIT_S = 20.0
FOREVER = ["/bin/sh", "-c", "sleep 1000 & sleep 1000; true"]
# it hears no SIGTERM, which is what the kernel sends it when its recorder dies
STUBBORN = ["/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done"]
RECORDER = """
import signal, sys
from pathlib import Path
from tasks.workloads.record.programs.program import make_place
place = make_place(Path(sys.argv[1]))
process = place.spawn(sys.argv[3:], name="child", first_signal=signal.Signals[sys.argv[2]])
while place.last_words("child") != "ready":
    pass
print(process.pid, flush=True)
sys.stdin.read()
"""


class Sleeper(Program):
    """A load that would never end, or the given one."""

    name, inputs, needs = "sleeper", {"plain": {}}, ()

    def __init__(self, command: list[str]) -> None:
        self.command = command

    def load(self, place: ProgramPlace, options: Options) -> Client:
        return place.spawn(self.command, name="load")


@contextlib.contextmanager
def recorder(
    place: ProgramPlace, first_signal: str, command: list[str]
) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """Another recorder, with one process at work in the place: its id is given too."""
    arguments = [sys.executable, "-c", RECORDER, str(place.folder.parent), first_signal, *command]
    process = subprocess.Popen(arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def test_a_process_is_unprivileged_in_its_own_session_and_told_nothing_of_our_environment(
    place: ProgramPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHORL_SECRET", "of the recorder")
    process = place.spawn(
        ["/bin/sh", "-c", 'echo "$(id -un) $WHORL_SECRET $(cut -d " " -f 6 /proc/self/stat)"'], name="x"
    )
    assert process.wait(LIMIT_S) == 0
    user = USER if os.geteuid() == 0 else subprocess.check_output(["id", "-un"], text=True).strip()
    assert place.last_words("x").split() == [user, str(process.pid)]


def test_a_process_is_in_its_control_groups_before_it_is_anything_else(place: ProgramPlace) -> None:
    groups = (place.folder / "cpu", place.folder / "memory")
    joining = ProgramPlace(place.folder, joins=groups)
    process = joining.spawn(["/bin/true"], name="x")
    assert process.wait(LIMIT_S) == 0
    assert [group.read_text().strip() for group in groups] == [str(process.pid)] * 2
    joining.stop()


def test_a_stop_ends_processes_and_their_children_and_may_come_twice(place: ProgramPlace) -> None:
    process = place.spawn(FOREVER, name="x")
    place.stop()
    assert members(process.pid) == []
    assert process.returncode == -signal.SIGKILL
    place.stop()
    assert not place.register.exists()


def test_a_process_that_ignores_the_first_signal_is_killed(place: ProgramPlace) -> None:
    process = place.spawn(STUBBORN, name="x", first_signal=signal.SIGTERM)
    start = started(process.pid)
    assert start
    end_session(process.pid, start, signal.SIGTERM, grace_s=0.0)
    assert members(process.pid) == []


def test_nothing_is_signalled_under_an_id_that_belongs_to_another_process(place: ProgramPlace) -> None:
    process = place.spawn(FOREVER, name="x")
    end_session(process.pid, "1", signal.SIGKILL)
    assert process.poll() is None


def test_nothing_starts_in_a_place_that_was_stopped_until_it_is_opened(place: ProgramPlace) -> None:
    place.stop()
    with pytest.raises(Stopped):
        place.spawn(["/bin/true"], name="x")
    place.open()
    assert place.spawn(["/bin/true"], name="x").wait(LIMIT_S) == 0


def test_a_recorder_that_is_killed_takes_its_processes_along(place: ProgramPlace) -> None:
    with recorder(place, "SIGKILL", ["/bin/sh", "-c", "echo ready; exec sleep 1000"]) as (process, child):
        process.kill()
        assert wait_for_end(child, LIMIT_S)


def test_what_outlives_a_killed_recorder_is_ended_by_the_next_one(place: ProgramPlace) -> None:
    with recorder(place, "SIGTERM", STUBBORN) as (process, child):
        process.kill()
        process.wait(LIMIT_S)
        (entry,) = place.register.read_text().splitlines()
        place.register.write_text(entry.rpartition(" ")[0] + f" {int(signal.SIGKILL)}\n")  # no need to wait for it
        assert started(child) is not None
        place.stop()
        assert members(child) == []


def test_a_folder_that_the_unprivileged_user_cannot_enter_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("without root, processes run as the user")
    tmp_path.chmod(0o700)
    with pytest.raises(BadSetting, match=f"the user {USER} may not enter .*; choose a folder below"):
        make_place(tmp_path / "place")


def test_no_process_from_elsewhere_is_ended_though_the_register_names_it(place: ProgramPlace) -> None:
    bystander = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        place.register.write_text(f"{bystander.pid} {started(bystander.pid)} 9\ntorn")
        place.stop()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_what_the_workload_writes_is_apart_from_what_the_recorder_keeps(place: ProgramPlace) -> None:
    kept = place.register.parent
    assert {place.log("x").parent, kept} == {place.folder.parent}
    assert not kept.stat().st_mode & 0o022
    if os.geteuid() == 0:
        assert (kept.stat().st_uid, place.folder.stat().st_uid) == (0, pwd.getpwnam(USER).pw_uid)


def test_nothing_is_written_or_given_away_through_a_link(place: ProgramPlace, tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.write_text("precious")
    folder.mkdir()
    (place.folder / "settings").symlink_to(outside)
    (place.folder / "linked").symlink_to(folder)
    before = (outside.stat().st_uid, folder.stat().st_uid)
    assert place.write("settings", "x").read_text() == "x"
    place.give(place.folder)
    assert outside.read_text() == "precious"
    assert (outside.stat().st_uid, folder.stat().st_uid) == before


def test_a_folder_that_others_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for name in ("link", "open"):
        with pytest.raises(BadSetting, match="others may write there"):
            make_place(tmp_path / name)


def test_a_load_that_ends_too_early_is_an_error_with_its_last_words(place: ProgramPlace) -> None:
    with pytest.raises(ProgramFailed, match=r"sleeper: load ended too early, with status 3: no such table; see .*load"):
        Sleeper(["/bin/sh", "-c", "echo no such table >&2; exit 3"]).run(place, {}, LIMIT_S)


def test_a_run_that_is_stopped_from_elsewhere_returns_without_an_error(place: ProgramPlace) -> None:
    sleeper, errors = Sleeper(["/bin/sh", "-c", "echo ready; exec sleep 1000"]), []

    def run() -> None:
        try:
            sleeper.run(place, {}, 1000.0)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while place.last_words("load") != "ready":
        thread.join(0.01)
    place.stop()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    assert errors == []


def test_a_command_gets_its_folder_as_one_word_also_with_a_space_in_it_and_no_empty_one(tmp_path: Path) -> None:
    spawned: list[list[str]] = []

    class Recorded(ProgramPlace):
        def spawn(self, command: Sequence[str], **more: object) -> Client:
            spawned.append(list(command))
            return subprocess.Popen(["/bin/true"])

    program = Command("echo", Need(("/bin/echo",), "coreutils", "file"), "{live} --in {folder} {seed}", {})
    folder = tmp_path / "two words"
    program.load(Recorded(folder, seed=3), {"live": ""}).wait()
    program.load(Recorded(folder, seed=3), {"live": "-re"}).wait()
    assert spawned == [["/bin/echo", "--in", str(folder), "3"], ["/bin/echo", "-re", "--in", str(folder), "3"]]
