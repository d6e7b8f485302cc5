"""What a log would give, without keeping any of it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tasks.jobs.grouping import group_keys
from tasks.jobs.intake import Intake
from tasks.jobs.readers import READERS, detect
from tasks.progress import report_progress
from tasks.reading import Chunk, guarded

N_REASONS = 5
N_EXAMPLES = 3


@dataclass(frozen=True)
class Refused:
    """Rows refused for one reason, with the first places (lines or rows of the file) where they stand."""

    reason: str
    n_rows: int
    places: list[int]


@dataclass(frozen=True)
class Preview:
    """What a log would give. Shares (0 to 1) are of the kept rows, by how often their job stands in this log.

    refused: the most frequent reasons. A run id that stands twice shows at ingest only."""

    path: str
    reader: str
    n_read: int
    n_kept: int
    n_refused: int
    n_groups: int
    recurring_share: float
    support_3_share: float
    support_20_share: float
    refused: list[Refused]


def preview_log(path: str, intake: Intake) -> Preview:
    """Read a whole log as an ingest would, and count; memory grows with the number of jobs, not of rows.

    Raises BadInput for a file that is wrong as a whole."""
    reader = READERS[intake.reader] if intake.reader else detect(path, intake.read.limits)
    support: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    places: dict[str, list[int]] = {}
    for chunk in _reported(guarded(path, reader.read(path, intake.read)), path):
        support.update(group_keys(chunk.rows, intake.group))
        reasons.update(chunk.refused["reason"])
        for reason, group in chunk.refused.groupby("reason")["place"]:
            known = places.setdefault(str(reason), [])
            known += group.head(N_EXAMPLES - len(known)).to_list()
    n_kept, n_refused = support.total(), reasons.total()
    return Preview(
        path=path,
        reader=reader.name,
        n_read=n_kept + n_refused,
        n_kept=n_kept,
        n_refused=n_refused,
        n_groups=len(support),
        recurring_share=_share(support, 2),
        support_3_share=_share(support, 3),
        support_20_share=_share(support, 20),
        refused=[Refused(reason, n_rows, places[reason]) for reason, n_rows in reasons.most_common(N_REASONS)],
    )


def _reported(chunks: Iterator[Chunk], path: str) -> Iterator[Chunk]:
    n_read = 0
    for chunk in chunks:
        n_read += len(chunk.rows) + len(chunk.refused)
        report_progress(f"reading {path}", n_read)
        yield chunk


def _share(support: Counter[str], least: int) -> float:
    """Share of the rows whose job has at least so many of them."""
    n_rows = support.total()
    return sum(n for n in support.values() if n >= least) / n_rows if n_rows else 0.0
