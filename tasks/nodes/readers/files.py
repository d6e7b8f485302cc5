"""A folder as one thing to read, with a hash of all its files; a file is a folder with nothing in it."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

from tasks.errors import BadInput
from tasks.intake.files import open_plain
from tasks.storage import ADDRESS, storage_of
from tasks.warehouse.landing import sha256_of


@dataclass(frozen=True)
class Folder:
    """A folder on this machine or anywhere fsspec reaches; a file is a folder with nothing in it."""

    path: str

    @cached_property
    def _found(self) -> tuple[str, tuple[str, ...]]:
        """The folder's path in its storage, and the names of all files below it, in order."""
        fs, root = storage_of(self.path)
        root = str(root).rstrip("/")
        if not fs.isdir(root):
            return root, ()
        return root, tuple(sorted(str(name).removeprefix(f"{root}/") for name in fs.find(root)))

    @property
    def is_folder(self) -> bool:
        """Whether there is such a folder with files below it."""
        return bool(self._found[1])

    def names(self) -> tuple[str, ...]:
        """Files below it, as paths within it, in order."""
        return self._found[1]

    def holds(self, path: str) -> bool:
        """Whether this path within it is a file."""
        return path in self._known

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self._found[1])

    def absolute(self, path: str) -> str:
        """The whole path of a path within it, without the address of its storage."""
        return f"{self._found[0]}/{path}"

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

    def sha256(self, names: tuple[str, ...] = ()) -> str:
        """Hash over names and contents of its files, or of some of them."""
        digest = hashlib.sha256()
        for name in names or self.names():
            digest.update(f"{name}\0{sha256_of(self.address(name))}\n".encode())
        return digest.hexdigest()
