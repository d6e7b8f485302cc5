"""From blocks of `sacct --parsable2` lines to a table of texts, one column for each field that we use."""

import io
from typing import Any, cast

import numpy as np
import pandas as pd
from pyarrow import csv, string

from tasks.jobs.readers.slurm_layout import BAR, IDS, NAME, STEP_MARK, WANTED, Layout
from tasks.reading import Block, all_refusals, refusals

LINE_END, BAR_CODE = ord("\n"), ord(BAR)
MAX_HELD_BYTES = 8 * 2**20


def join_blocks(blocks: list[Block]) -> Block:
    """Blocks that follow each other, as one."""
    data = b"".join(block.data for block in blocks) if len(blocks) > 1 else blocks[0].data
    return Block(blocks[0].first, data, all_refusals([block.refused for block in blocks]))


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
