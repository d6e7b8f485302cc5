"""Parts of disturbed executions in the folder of a recording: a folder is read without them, their names read them."""

import re
from collections.abc import Sequence

from tasks.nodes.readers.folders import Folder

FLAGGED = re.compile(r"(^|/)flagged-\d+\.parquet$")  # our recorder's parts of executions that were to be repeated
UNDISTURBED = re.compile(r"(^|/)executions-\d+\.parquet$")


def without_disturbed(files: Sequence[str]) -> list[str]:
    """The files without flagged-NNNN.parquet where parts executions-NNNN.parquet lie in the same folder."""
    recordings = {_folder_of(file) for file in files if UNDISTURBED.search(file)}
    return [file for file in files if not (FLAGGED.search(file) and _folder_of(file) in recordings)]


def tell_left_out(paths: Sequence[str]) -> str:
    """The line for parts that are left out of folders among the paths; empty for none. A path need not be there."""
    n_files = 0
    for path in paths:
        names = Folder(path).names()
        n_files += len(names) - len(without_disturbed(names))
    if not n_files:
        return ""
    parts = "1 part" if n_files == 1 else f"{n_files:,} parts"
    return f"left out {parts} of disturbed executions (flagged-…); name them to read them"


def _folder_of(file: str) -> str:
    return file.rpartition("/")[0]
