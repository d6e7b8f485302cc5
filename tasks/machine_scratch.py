"""Scratch folders of recorders: only their owner writes there, also where all users share the place."""

import hashlib
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

DIGEST_DIGITS = 10
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def scratch_folder(word: str, campaign: str, *, place: str, shared: Path) -> Path:
    """The folder of a campaign, made if need be, closed to others: the same one whenever it is continued.

    campaign: what tells it from others; place: a folder to use, which is taken as it is if it is ours alone; shared:
    where to make one, which is also done in a `place` that others write to. What is not ours there, link or folder, is
    left alone whatever its name is."""
    if place:
        shared = Path(place).absolute()
        shared.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_ours(shared):
            return shared
    name = f"whorl-{word}-{hashlib.sha256(campaign.encode()).hexdigest()[:DIGEST_DIGITS]}-"
    ours = sorted(filter(is_ours, shared.glob(f"{name}*")))
    return ours[0] if ours else Path(tempfile.mkdtemp(prefix=name, dir=shared))


def remove_scratch(folder: Path, place: str) -> None:
    """Remove a campaign's folder with all that is in it; a `place` that was given goes only if it is empty."""
    if folder != Path(place).absolute():
        shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.rmdir()


def is_ours(folder: Path) -> bool:
    """Whether it is a folder, no link to one, that belongs to this user and that nobody else can write to."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & OTHERS_WRITE
