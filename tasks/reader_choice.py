"""Which of several readers a file is for."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from tasks.errors import BadInput
from tasks.intake.files import input_faults

HEAD_SHOWN = 40


class Sniffer(Protocol):
    """What tells whether a file is for a reader."""

    @property
    def name(self) -> str:
        """What --reader calls it."""

    @property
    def title(self) -> str:
        """What it reads, in a few words."""

    @property
    def endings(self) -> tuple[str, ...]:
        """How names of its files end, in lower case."""

    def sniff(self, head: bytes, path: str) -> bool:
        """Whether the first 64 KiB (unpacked) look like this format; without them, whether the path does."""


AnyReader = TypeVar("AnyReader", bound=Sniffer)


def reader_for(path: str, readers: Sequence[AnyReader], head_of: Callable[[], bytes], what: str) -> AnyReader:
    """The reader that a file is for: by its address, else by its content, else by how its name ends.

    head_of: reads the first 64 KiB, unpacked. what: they all read, such as `job log`. Raises BadInput if none fits, or
    if the file cannot be opened."""
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
    shown = head[:HEAD_SHOWN].decode("utf-8", "replace")
    raise BadInput(
        path,
        f"no known {what} (it begins with {shown!r})",
        "; ".join(reader.title for reader in readers),
        f"name the reader: --reader {'|'.join(reader.name for reader in readers)}",
    )
