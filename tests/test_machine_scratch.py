"""Scratch folders: found again, closed to others, and nothing that somebody else has put there is touched."""

import os
import stat
from pathlib import Path

import pytest

from tasks.machine_scratch import is_ours, remove_scratch, scratch_folder

NOBODY = 65534


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A place that all users write to."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def scratch(shared: Path, campaign: str = "c", place: str = "") -> Path:
    return scratch_folder("record", campaign, place=place, shared=shared)


def test_a_campaign_finds_its_folder_again_and_no_other_one_s(shared):
    folder = scratch(shared)
    assert folder == scratch(shared)
    assert folder != scratch(shared, "other")
    assert folder.parent == shared
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_planted_link_is_neither_followed_nor_removed(shared, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    before = precious.stat().st_mode
    name = scratch(shared).name
    (shared / name).rmdir()
    (shared / name).symlink_to(precious)
    folder = scratch(shared)
    assert folder.name != name
    remove_scratch(folder, "")
    assert (shared / name).is_symlink()
    assert precious.stat().st_mode == before


@pytest.mark.parametrize("mode", [0o700, 0o777])
def test_a_folder_of_another_user_or_one_that_others_write_to_is_left_alone(shared, mode):
    planted = scratch(shared)
    (planted / "file").touch()
    planted.chmod(mode)
    if os.geteuid() == 0:
        os.chown(planted, NOBODY, NOBODY)
    elif mode == 0o700:
        pytest.skip("only root can give a folder away")
    before = planted.stat()
    folder = scratch(shared)
    assert folder != planted
    assert is_ours(folder)
    remove_scratch(folder, "")
    assert (planted / "file").exists()
    assert (planted.stat().st_mode, planted.stat().st_uid) == (before.st_mode, before.st_uid)


def test_a_place_of_ours_is_taken_as_it_is_and_outlives_the_campaign_if_something_is_in_it(shared, tmp_path):
    place = tmp_path / "disk"
    assert scratch(shared, place=str(place)) == place
    (place / "notes.txt").touch()
    remove_scratch(place, str(place))
    assert (place / "notes.txt").exists()
    assert list(shared.iterdir()) == []


def test_in_a_place_that_others_write_to_a_folder_of_our_own_is_made(shared, tmp_path):
    folder = scratch(tmp_path, place=str(shared))
    assert folder.parent == shared
    assert is_ours(folder)
    remove_scratch(folder, str(shared))
    assert list(shared.iterdir()) == []
