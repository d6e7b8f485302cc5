"""What a path means: a file of this machine, or an address that fsspec reaches; what of it is read, and by whom."""

import errno
import logging
import lzma
import os
import secrets
import shutil
import stat
import tarfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from tasks.errors import BadInput, BadSetting, WhorlError, reason_of

CANNOT_OPEN = (
    OSError, ValueError, ImportError, TypeError, LookupError, EOFError, RuntimeError, NotImplementedError,
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
logger = logging.getLogger(__name__)

ADDRESS, CHAIN = "://", "::"
OTHERS = 0o007  # rights of those who are neither the owner nor in the group
OWNERS_FILE, OWNERS_FOLDER = 0o600, 0o700
KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def _open_regular(path: str) -> IO[bytes]:
    """A regular file of this machine, or a link to one: a FIFO would be waited for, and a device may never end."""
    _refuse_irregular(path, Path(path).stat().st_mode)  # before it is opened: that alone can move a tape
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _refuse_irregular(path, os.fstat(handle).st_mode)  # it may have been replaced meanwhile
    except (BadInput, OSError):
        os.close(handle)
        raise
    return open(path, "rb", opener=lambda *_: handle)


def _refused(error: OSError) -> None:
    if isinstance(error, PermissionError):
        problem = f"cannot be listed ({reason_of(error)})"
        raise BadInput(error.filename, problem, "a readable folder", "change its rights") from error


def _left_out(error: OSError) -> None:
    if isinstance(error, PermissionError):
        logger.warning("%s cannot be listed (%s); its files are left out", error.filename, reason_of(error))


def _refuse_irregular(path: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        problem = f"cannot be opened (it is {KINDS.get(stat.S_IFMT(mode), 'no file')})"
        raise BadInput(path, problem, "a regular file", "check the path")


@cache
def _regular_files() -> Any:
    """The class of fsspec (70 ms to import) for the files of this machine: what is opened to be read is regular."""
    from fsspec.implementations.local import LocalFileSystem

    class RegularFiles(LocalFileSystem):  # type: ignore[misc]
        """A folder that this user may not list is no empty one: to look below it raises BadInput, and where it lies
        below another it is told."""

        def find(self, path: str, *args: Any, **more: Any) -> Any:
            return super().find(path, *args, **{"on_error": _refused, **more})

        def walk(self, path: str, *args: Any, **more: Any) -> Any:
            return super().walk(path, *args, **{"on_error": _left_out, **more})

        def _open(self, path: str, mode: str = "rb", *args: Any, **more: Any) -> Any:
            return _open_regular(path) if mode == "rb" else super()._open(path, mode, *args, **more)

    return RegularFiles


def _local(path: str) -> str | None:
    """The place of a path on this machine; None for an address.

    A local file or folder that exists wins: to fsspec 'a::b' would be a chain of file systems."""
    is_local = ADDRESS not in path or (CHAIN in path and os.path.lexists(path))
    return str(Path(path).expanduser().absolute()) if is_local else None


def open_stored(path: str) -> IO[bytes]:
    """The bytes of a file of this machine, or of one at an address. Raises BadInput, and what CANNOT_OPEN names."""
    if (local := _local(path)) is not None:
        return _open_regular(local)
    fs, name = storage_of(path)
    return fs.open(name, "rb")  # type: ignore[no-any-return]


def storage_of(path: str) -> tuple[Any, str]:
    """The file system of a path and the path in it; what has no '://' lies on this machine.

    Raises BadInput for an address of a kind that fsspec does not know, and for an archive in it that is none."""
    if (local := _local(path)) is not None:
        return _regular_files()(), local
    import fsspec

    for name in ("file", "local"):  # also inside a chain such as zip://member::/folder/archive.zip
        fsspec.register_implementation(name, _regular_files(), clobber=True)
    try:
        return fsspec.url_to_fs(path)  # type: ignore[no-any-return]
    except CANNOT_OPEN as error:
        raise BadInput(
            path, f"cannot be opened ({reason_of(error)})", "a readable file", "check the address"
        ) from error


def remove_inside(root: Path, path: Path) -> None:
    """Remove a file or folder below root; of a link the link alone, never what it leads to.

    Raises WhorlError, and removes nothing, if the path leads out of root."""
    prove_inside(root, path)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def prove_inside(root: Path, path: Path) -> None:
    """Raise WhorlError if a path that is about to be removed leads out of root."""
    if path.name in ("", "..") or not path.parent.resolve().is_relative_to(root.resolve()):
        raise WhorlError(f"{path}: leads out of {root}; expected a place in it; nothing was removed")


class _Inside:
    """Who is inside `private`, and the mask of the process before."""

    def __init__(self) -> None:
        self.lock, self.n_threads, self.before = threading.Lock(), 0, 0


_inside = _Inside()


@contextmanager
def private() -> Iterator[None]:
    """What this process makes inside the block is for its user alone: files 0600, folders 0700.

    The mask is the process's: the first of its threads sets it, and the last one to leave sets it back."""
    with _inside.lock:
        if not _inside.n_threads:
            _inside.before = os.umask(0o077)
        _inside.n_threads += 1
    try:
        yield
    finally:
        with _inside.lock:
            _inside.n_threads -= 1
            if not _inside.n_threads:
                os.umask(_inside.before)


def narrow(*paths: Path) -> None:
    """Take from everybody else what a file or folder of ours, made by an earlier version, still allows them.

    Rights that its owner gave to a group alone stay."""
    for path in paths:
        if path.exists() and path.stat().st_mode & OTHERS and path.stat().st_uid == os.geteuid():
            path.chmod(OWNERS_FOLDER if path.is_dir() else OWNERS_FILE)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A draft beside a file, put in its place when the block ends: a file appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def private_content(path: Path, new: Callable[[], bytes]) -> bytes:
    """What stands in a file that its owner alone may read; made whole on first use, whoever is faster.

    Raises BadSetting if others may read it."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(new())
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink(missing_ok=True)
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadSetting(f"{path}: others may read the key; expected a file of its owner alone; run chmod 600 on it")
    return path.read_bytes()
