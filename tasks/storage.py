"""What a path means: a file of this machine, or an address that fsspec reaches."""

import os
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

ADDRESS, CHAIN = "://", "::"


def storage_of(path: str) -> tuple[Any, str]:
    """The file system of a path and the path in it; what has no '://' lies on this machine.

    A local file or folder that exists wins: to fsspec 'a::b' would be a chain of file systems.
    Raises ValueError or ImportError for an address of a kind that fsspec does not know."""
    if ADDRESS in path and not (CHAIN in path and os.path.lexists(path)):
        return fsspec.url_to_fs(path)  # type: ignore[no-any-return]
    return LocalFileSystem(), str(Path(path).expanduser().absolute())
