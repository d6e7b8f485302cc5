"""How many rows of a file can be used, how many were refused and why: what stops a load, and what --dry-run tells."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.intake.files import Chunk, guarded
from tasks.quantities import share

N_REASONS = 5
N_EXAMPLES = 3
# Lines that are refused with good reason, however many there are: they do not count as a fault of the file
UNSUPPORTED_EVENT = "this machine does not support the event"
PART_OF_A_JOB = "a part of an interrupted job (status 2 to 4); expected its own line"
NO_BENCHMARK = "describes the machine, is no benchmark"
CUT_OFF = "it was cut off"
NO_FAULTS = (UNSUPPORTED_EVENT, PART_OF_A_JOB, NO_BENCHMARK, CUT_OFF)  # how reasons end
MAX_REASONS = 10_000  # different ones that are counted by themselves: reasons may quote values
OTHER_REASONS = "other reasons"
# Words whose readers list single values of landed rows among what they refuse, at the place of their row: they stand in
# ops.quarantine, and are no rows of the file for ops.files.
REFUSE_VALUES = {"nodes"}
NOWHERE = np.zeros(0, dtype="int64")


@dataclass(frozen=True)
class Refused:
    """Rows refused for one reason, with the first places (lines or rows of the file) where they stand."""

    reason: str
    n_rows: int
    places: list[int]


@dataclass(frozen=True)
class Preview:
    """What a file would give. n_kept, n_refused: rows of the file; refused: the most frequent reasons.

    n_faulty: refused rows that speak against the file, without those of NO_FAULTS. understood: of its columns. A run
    id that stands twice shows at ingest only."""

    path: str
    reader: str
    n_read: int
    n_kept: int
    n_refused: int
    n_faulty: int
    refused: list[Refused]
    understood: tuple[str, ...] = ()

    def require(self, max_refused_share: float) -> None:
        """Raise BadInput if a larger share of the rows is faulty."""
        if self.n_faulty <= max_refused_share * self.n_read:
            return
        first = next(one for one in self.refused if not one.reason.endswith(NO_FAULTS))
        which = "most of them" if 2 * first.n_rows >= self.n_faulty else "some of them"
        raise BadInput(
            self.path,
            f"not loaded: {self.n_faulty:,} of {self.n_read:,} rows are refused, {which} ({first.n_rows:,}, in "
            f"line {', '.join(f'{place:,}' for place in first.places)}) because: {first.reason}",
            f"at most {share(max_refused_share)} refused",
            "mend or map what is named, or raise --max-refused-share (read.limits.max_refused_share)",
        )


class Tally:
    """Counts the rows of a file while it is read."""

    def __init__(self, word: str) -> None:
        self.n_kept = 0
        self.understood: list[str] = []
        self._refuses_values = word in REFUSE_VALUES
        self._reasons: Counter[str] = Counter()
        self._places: dict[str, list[int]] = {}
        self._kept, self._refused = [NOWHERE], [NOWHERE]

    def counted(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """The chunks, each counted when it is asked for."""
        for chunk in chunks:
            self._add(chunk.rows, chunk.refused)
            self.understood += chunk.understood
            yield chunk

    def _add(self, rows: pd.DataFrame, refused: pd.DataFrame) -> None:
        self.n_kept += int(np.sum(rows["n_rows"])) if "n_rows" in rows else len(rows)
        if self._refuses_values:  # several faults of a row, and faults of rows that are kept
            self._kept += [rows["place"].to_numpy(dtype="int64")] if len(rows) else []
            self._refused.append(np.unique(refused["place"].to_numpy(dtype="int64")))
        for reason, group in refused.groupby("reason")["place"]:
            if reason in self._reasons or len(self._reasons) < MAX_REASONS:
                known = self._places.setdefault(str(reason), [])
                known += group.head(N_EXAMPLES - len(known)).to_list()
                self._reasons[str(reason)] += len(group)
            else:
                self._reasons[OTHER_REASONS] += len(group)

    def preview(self, path: str, reader: str) -> Preview:
        """What was counted so far."""
        n_refused = self._reasons.total()
        n_rightly = sum(n for reason, n in self._reasons.items() if reason.endswith(NO_FAULTS))
        if self._refuses_values:
            n_refused = len(np.setdiff1d(np.concatenate(self._refused), np.concatenate(self._kept)))
        frequent = self._reasons.most_common(N_REASONS)
        return Preview(
            path=path,
            reader=reader,
            n_read=self.n_kept + n_refused,
            n_kept=self.n_kept,
            n_refused=n_refused,
            n_faulty=max(0, n_refused - n_rightly),
            refused=[Refused(reason, n_rows, self._places.get(reason, [])) for reason, n_rows in frequent],
            understood=tuple(self.understood),
        )


def preview_of(word: str, path: str, reader: str, chunks: Iterable[Chunk]) -> Preview:
    """What the chunks of a file would give; none of them is kept."""
    tally = Tally(word)
    for _ in tally.counted(guarded(path, chunks)):
        pass
    return tally.preview(path, reader)
