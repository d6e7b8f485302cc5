"""From blocks of `sacct --parsable2` lines to a table of texts, one column for each field that we use."""

import io
from collections import Counter
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from pyarrow import csv, string

from tasks.errors import BadInput, BadSetting, quoted
from tasks.intake.files import Block, all_refusals, refusals

BAR = "|"
LINE_END, BAR_CODE = ord("\n"), ord(BAR)
MAX_HELD_BYTES = 8 * 2**20
STEP_MARK = "."  # 123.batch, 123.0, 123.extern
IDS = ("JobIDRaw", "JobID")  # the raw id first: it is unique to a task of a job array
NAME = "JobName"
WANTED = (
    *IDS,
    NAME,
    *("Cluster", "User", "UID", "Account", "Group", "Partition", "QOS", "State"),
    *("Submit", "Eligible", "Start", "End", "Elapsed", "ElapsedRaw", "Timelimit", "TimelimitRaw"),
    *("NCPUS", "AllocCPUS", "ReqCPUS", "NNodes", "AllocNodes", "ReqNodes"),
    *("ReqMem", "ReqTRES", "AllocTRES", "MaxRSS", "TotalCPU", "CPUTimeRAW"),
)
CANONICAL = {name.lower(): name for name in WANTED}  # sacct takes field names in any case
NEEDED = (IDS, ("Start",), ("End", "Elapsed", "ElapsedRaw"))


def join_blocks(blocks: list[Block]) -> Block:
    """Blocks that follow each other, as one."""
    data = b"".join(block.data for block in blocks) if len(blocks) > 1 else blocks[0].data
    return Block(blocks[0].first, data, all_refusals([block.refused for block in blocks]))


@dataclass(frozen=True)
class Layout:
    """How the lines of a log are built: the fields in their order, as sacct names them."""

    fields: tuple[str, ...]
    header: str | None
    has_trailing_bar: bool  # `sacct --parsable`

    @property
    def n_bars(self) -> int:
        """Bars in a line whose fields hold none."""
        return len(self.fields) - 1 + self.has_trailing_bar

    @property
    def name_is_last(self) -> bool:
        """Whether surplus bars can only belong to the job's name, which sacct does not escape."""
        return self.fields[-1] == NAME


def split_before_last_job(block: Block, layout: Layout) -> tuple[Block, Block]:
    """The block without its last job and that job's steps, and these; more steps may follow in the next block.

    A job with more than MAX_HELD_BYTES of steps is not held: later steps do not count for its peak memory."""
    id_column = next(layout.fields.index(name) for name in IDS if name in layout.fields)
    end = len(block.data) - 1
    while end > 0 and len(block.data) - end < MAX_HELD_BYTES:
        start = block.data.rfind(b"\n", 0, end) + 1
        job_id = block.data[start:end].split(BAR.encode(), id_column + 1)[id_column : id_column + 1]
        if any(text[:1].isdigit() and STEP_MARK.encode() not in text for text in job_id):
            return _split(block, start)
        end = start - 1
    return _split(block, len(block.data))


def raw_lines(block: Block, places: pd.Series) -> list[str]:
    """The lines with these numbers, as they stand in the file."""
    ends = _line_ends(block)
    starts = np.concatenate(([0], ends[:-1] + 1))
    rows = places.to_numpy() - block.first
    return [block.data[starts[row] : ends[row]].decode() for row in rows]


def read_table(block: Block, layout: Layout) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The lines as texts: (table, refused).

    table: columns of WANTED as far as the log has them (str) and place (int64). Blank lines and repeated
    headers are left out; a line with too few or too many bars is refused, with those of the block."""
    surplus = _bars(block) - layout.n_bars
    places = pd.Series(np.arange(block.first, block.first + len(surplus), dtype="int64"))
    if not surplus.any() and not (layout.header and layout.header.encode() in block.data):
        return _texts(block.data, layout).assign(place=places), block.refused
    lines = block.data.decode().split("\n")[:-1]
    is_data = np.array([bool(line) and not line.isspace() and line != layout.header for line in lines], dtype=bool)
    fits = is_data & ((surplus == 0) | ((surplus > 0) & layout.name_is_last))
    good = [(line, n) for line, n, fit in zip(lines, surplus, fits, strict=True) if fit]
    text = "".join(f"{_cut(line, layout) if n else line}\n" for line, n in good)
    table = _texts(text.encode(), layout).assign(place=places[fits].array)
    if any(n for _, n in good):
        full = [_name_with_bars(line, layout) if n else None for line, n in good]
        table = table.assign(**{NAME: pd.Series(full, dtype="str").fillna(table[NAME])})
    is_bad = is_data & ~fits
    raw = [line for line, bad in zip(lines, is_bad, strict=True) if bad]
    refused = refusals(places[is_bad], [_miscounted(layout, n) for n in surplus[is_bad]], raw)
    return table, all_refusals([block.refused, refused])


def _split(block: Block, start: int) -> tuple[Block, Block]:
    first = block.first + block.data.count(b"\n", 0, start)
    before = Block(block.first, block.data[:start], block.refused)
    return before, Block(first, block.data[start:], block.refused.iloc[:0])


def _line_ends(block: Block) -> Any:
    return np.flatnonzero(np.frombuffer(block.data, dtype=np.uint8) == LINE_END)


def _bars(block: Block) -> Any:
    """How many bars each line holds: (n_lines,)."""
    bars = np.flatnonzero(np.frombuffer(block.data, dtype=np.uint8) == BAR_CODE)
    return np.diff(np.searchsorted(bars, _line_ends(block)), prepend=0)


def _texts(data: bytes, layout: Layout) -> pd.DataFrame:
    """The fields that we use, a column each: text as it stands, empty where nothing stands."""
    columns = [f"f{i}" for i in range(layout.n_bars + 1)]  # a field may be listed twice: the first counts
    ours = {name: columns[layout.fields.index(name)] for name in WANTED if name in layout.fields}
    if not data:
        return pd.DataFrame({name: pd.Series([], dtype="str") for name in ours})
    table = csv.read_csv(
        io.BytesIO(data.replace(b"\r", b" ")),
        read_options=csv.ReadOptions(column_names=columns, use_threads=False, block_size=len(data) + 1),
        parse_options=csv.ParseOptions(delimiter=BAR, quote_char=False, ignore_empty_lines=False),
        convert_options=csv.ConvertOptions(
            include_columns=list(ours.values()), column_types=dict.fromkeys(ours.values(), string())
        ),
    )
    return cast(pd.DataFrame, table.rename_columns(list(ours)).to_pandas())


def _cut(line: str, layout: Layout) -> str:
    return BAR.join(line.split(BAR)[: layout.n_bars + 1])


def _name_with_bars(line: str, layout: Layout) -> str:
    return line.removesuffix(BAR * layout.has_trailing_bar).split(BAR, len(layout.fields) - 1)[-1]


def _miscounted(layout: Layout, surplus: int) -> str:
    hint = "; a bar in a name? let JobName be the last field" if surplus > 0 else ""
    return f"{len(layout.fields) + surplus} fields instead of {len(layout.fields)}{hint}"


def sacct_fields_in(line: str) -> set[str]:
    """The fields of sacct that a header line names; empty for a line that does not name a job id."""
    names = set(_canonical(line.split(BAR)))
    return set() if names.isdisjoint(IDS) else names & set(WANTED)


def find_layout(path: str, lines: list[str], sacct_fields: str) -> Layout:
    """The layout that a header line tells, or else the fields of the setting read.sacct_fields.

    lines: the first lines of the log, not blank. Raises BadInput where fields are missing or do not fit."""
    if BAR not in lines[0]:
        raise BadInput(path, "no bars (|) between fields", "output of sacct --parsable2", "run sacct with --parsable2")
    return _from_header(path, lines) if sacct_fields_in(lines[0]) else _from_setting(path, lines, sacct_fields)


def _from_header(path: str, lines: list[str]) -> Layout:
    header = lines[0]
    layout = Layout(_canonical(header.removesuffix(BAR).split(BAR)), header, header.endswith(BAR))
    if lacking := _lacking(layout.fields):
        raise BadInput(path, f"the header lacks {lacking}", "JobID, Start and End", "add it to sacct --format")
    data = [line for line in lines if line != header]
    if data and not any(line.count(BAR) >= layout.n_bars for line in data):
        raise _misfit(path, data, layout)
    return layout


def _from_setting(path: str, lines: list[str], sacct_fields: str) -> Layout:
    names = [name.partition("%")[0] for name in sacct_fields.replace(BAR, ",").strip(", ").split(",")]
    has_trailing_bar = all(line.endswith(BAR) and line.count(BAR) >= len(names) for line in lines)
    layout = Layout(_canonical(names), None, has_trailing_bar)
    if lacking := _lacking(layout.fields):
        raise BadSetting(f"read.sacct_fields lacks {lacking}; list the fields that sacct --format was given")
    if _commonest_bars(lines) != layout.n_bars:
        raise _misfit(path, lines, layout)
    return layout


def _canonical(names: list[str]) -> tuple[str, ...]:
    return tuple(CANONICAL.get(name.strip().lower(), name.strip()) for name in names)


def _lacking(fields: tuple[str, ...]) -> str:
    return next((" or ".join(some) for some in NEEDED if set(some).isdisjoint(fields)), "")


def _commonest_bars(lines: list[str]) -> int:
    return Counter(line.count(BAR) for line in lines).most_common(1)[0][0]


def _misfit(path: str, lines: list[str], layout: Layout) -> BadInput:
    n_fields = _commonest_bars(lines) + 1 - layout.has_trailing_bar
    listed = "read.sacct_fields" if layout.header is None else "its header"
    return BadInput(
        path,
        f"lines of {n_fields} fields, but {listed} names {len(layout.fields)}",
        f"the fields {quoted(layout.fields)}",
        "export with a header (sacct --parsable2, no --noheader) or list the fields in read.sacct_fields",
    )
