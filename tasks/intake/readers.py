"""One protocol for the readers of all words: which of them a file is for, which files are read, how they are landed."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from tasks.choices import checked_source
from tasks.errors import BadInput
from tasks.intake.files import input_faults, open_plain
from tasks.storage import ADDRESS, storage_of
from tasks.warehouse.landing import Origin, sha256_of

HEAD_SHOWN = 40
REMOTE = ("http://", "https://")
Params = TypeVar("Params")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Reader(Generic[Params, Result]):
    """Reads one format: says what a row is.

    name: what --reader calls it. version: from 1; a newer one gives other rows and replaces a file's. title: what it
    reads, in a few words. endings: how names of its files end, in lower case; none for what is no file. sniff: whether
    the first 64 KiB (unpacked) look like this format; without them, whether the path does. read: what a file gives,
    part by part or at once; raises BadInput for a file that is wrong as a whole."""

    name: str
    version: int
    title: str
    endings: tuple[str, ...]
    sniff: Callable[[bytes, str], bool]
    read: Callable[[str, Params], Result]


@dataclass(frozen=True)
class Intake(Generic[Params]):
    """How files are to be read. reader: the name of one, or empty to find it out."""

    source: str
    reader: str
    read: Params


AnyReader = TypeVar("AnyReader", bound=Reader[Any, Any])


def reader_for(path: str, readers: Sequence[AnyReader], head_of: Callable[[], bytes], what: str) -> AnyReader:
    """The reader that a file is for: by its address, else by its content, else by how its name ends.

    head_of: reads the first 64 KiB, unpacked. what: they all read, such as `job log`. Raises BadInput if none
    fits, or if the file cannot be opened."""
    with input_faults(path):
        for reader in readers:
            if reader.sniff(b"", path):
                return reader
        head = head_of()
        for reader in readers:
            if reader.sniff(head, path):
                return reader
    for reader in readers:
        if path.lower().endswith(reader.endings):
            return reader
    raise unknown_format(path, head, readers, what)


def unknown_format(path: str, head: bytes, readers: Sequence[Reader[Any, Any]], what: str) -> BadInput:
    """The error for a file that no reader is for."""
    return BadInput(
        path,
        f"no known {what} (it begins with {head[:HEAD_SHOWN].decode('utf-8', 'replace')!r})",
        "; ".join(reader.title for reader in readers),
        f"name the reader: --reader {'|'.join(reader.name for reader in readers)}",
    )


def reader_called(path: str, name: str, readers: Mapping[str, AnyReader], detect: Callable[[], AnyReader]) -> AnyReader:
    """The reader of a name, or the one that is found where none is named. Raises BadInput for a name of none."""
    if not name:
        return detect()
    if name not in readers:
        raise BadInput(path, f"no reader {name!r}", f"one of {', '.join(readers)}", "leave it out to find it")
    return readers[name]


def files_below(path: str, what: str, named: Callable[[list[str]], list[str]], expected: str) -> list[str]:
    """The files of a folder that are to be read, in order; a file stands for itself.

    named: of all names in it those that are read. what, expected: what they are, how their names end. Raises BadInput
    for a path that does not exist, and for a folder without such a file."""
    fs, root = storage_of(path)
    if not fs.exists(root):
        raise BadInput(path, "no such file or folder", what, "check the path")
    if not fs.isdir(root):
        return [path]
    names = sorted(str(name) for name in fs.find(root))
    files = [fs.unstrip_protocol(name).removeprefix("file://") for name in named(names)]
    if not files:
        raise BadInput(path, f"{len(names)} files, none {what}", f"files that end in {expected}", "name one")
    return files


def sha256_of_all(files: Sequence[str]) -> str:
    """Hash of a file's bytes; of several files, over their hashes in their order."""
    if len(files) == 1:
        return sha256_of(files[0])
    return hashlib.sha256("".join(sha256_of(file) for file in files).encode()).hexdigest()


def origin_of(
    word: str, source: str, reader: Reader[Any, Any], version: int, options: dict[str, Any], path: str, sha256: str
) -> Origin:
    """What tells a batch from others. version: of what makes rows of what was read; options: what changes the rows.

    Raises BadSetting for a source that not everyone can type."""
    return Origin(
        word=word,
        source=checked_source(source),
        reader=reader.name,
        reader_version=f"{reader.version}.{version}",
        options=options,
        path=path,
        sha256=sha256,
    )


@dataclass(frozen=True)
class Folder:
    """A folder on this machine or anywhere fsspec reaches; a file is a folder with nothing in it."""

    path: str

    @cached_property
    def _listing(self) -> tuple[str, tuple[str, ...]]:
        """The folder's path in its storage, and the names of all files below it, in order."""
        fs, root = storage_of(self.path)
        root = str(root).rstrip("/")
        if not fs.isdir(root):
            return root, ()
        return root, tuple(sorted(str(name).removeprefix(f"{root}/") for name in fs.find(root)))

    @property
    def is_folder(self) -> bool:
        """Whether there is such a folder with files below it."""
        return bool(self._listing[1])

    def names(self) -> tuple[str, ...]:
        """Files below it, as paths within it, in order."""
        return self._listing[1]

    def holds(self, path: str) -> bool:
        """Whether this path within it is a file."""
        return path in self._known

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self._listing[1])

    def absolute(self, path: str) -> str:
        """The whole path of a path within it, without the address of its storage."""
        return f"{self._listing[0]}/{path}"

    def address(self, path: str) -> str:
        """What opens a path within it."""
        fs, _ = storage_of(self.path)
        return str(fs.unstrip_protocol(self.absolute(path))) if ADDRESS in self.path else self.absolute(path)

    def text(self, path: str, most_bytes: int) -> str:
        """The text of a file, what is not UTF-8 replaced. Raises BadInput for one that is larger."""
        with open_plain(self.address(path)) as stream:
            data = stream.read(most_bytes + 1)
        if len(data) > most_bytes:
            raise BadInput(self.absolute(path), f"more than {most_bytes:,} bytes", "a smaller file", "take it out")
        return str(data.decode("utf-8", "replace"))

    def sha256(self, names: tuple[str, ...]) -> str:
        """Hash over names and contents of some of its files."""
        digest = hashlib.sha256()
        for name in names:
            digest.update(f"{name}\0{sha256_of(self.address(name))}\n".encode())
        return digest.hexdigest()
