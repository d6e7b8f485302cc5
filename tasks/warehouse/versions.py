"""Versions of data and code: what a figure names so that it can be made again."""

import functools
import hashlib
import subprocess
from collections.abc import Container
from importlib import metadata
from pathlib import Path

from tasks.warehouse.connection import Connection

VERSION_CHARS = 12
ROOT = Path(__file__).parents[2]
GIT_WAIT_S = 5
CODE_SUFFIXES = {".py", ".sql"}


def data_version(connection: Connection, word: str, source: str) -> str:
    """Hash over the files of a source in their order: the same files read in the same way give the same version."""
    found = connection.execute(
        """SELECT left(sha256(coalesce(string_agg(batch_id, ',' ORDER BY ordered_at, batch_id), '')), $n_chars)
        FROM ops.files WHERE word = $word AND source = $source""",
        {"word": word, "source": source, "n_chars": VERSION_CHARS},
    ).fetchone()
    return str(found[0]) if found else ""


@functools.cache
def code_version() -> str:
    """Version of whorl and, in a checkout, the commit: `0.1.0+1a2b3c4d5e6f`, as this process found it first."""
    try:
        version = metadata.version("whorl")
    except metadata.PackageNotFoundError:
        version = "0"  # run from a checkout that is not installed
    command = ["git", "-C", str(ROOT), "rev-parse", f"--short={VERSION_CHARS}", "HEAD"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True, timeout=GIT_WAIT_S).stdout
    except (OSError, subprocess.SubprocessError):
        return version
    return f"{version}+{commit.strip()}"


def contents_hash(*paths: Path, suffixes: Container[str] | None = None) -> str:
    """SHA-256 over names and contents of files and of all below folders, those with these suffixes; order counts.

    A path that is missing counts as an empty folder. Raises OSError for a file that cannot be read."""
    digest = hashlib.sha256()
    for path in paths:
        below = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in below:
            if file.is_file() and (suffixes is None or file.suffix in suffixes):
                digest.update(file.relative_to(path).as_posix().encode() + b"\0")
                digest.update(hashlib.sha256(file.read_bytes()).digest())
        digest.update(b"\0\0")
    return digest.hexdigest()
