"""What the columns of a person's table mean, by their names and values: names, units, decimal commas, local dates.

Nothing is guessed in silence: a Meaning says in words what was understood, and what cannot be decided is refused."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tasks.errors import BadInput, quoted
from tasks.intake.files import MISSING, key_of, number_of, without_accents
from tasks.quantities import FACTORS, Dimension, unit_in_name

Order = Literal["", "day", "month"]  # what comes first in dates such as 03.04.2024
LOCAL_DATE = re.compile(
    r"^\s*(?P<a>\d{1,2})(?P<mark>[./-])(?P<b>\d{1,2})(?P=mark)(?P<year>\d{4}|\d{2})"
    r"(?:[ T,]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d+)?))?"
    r"\s*(?P<half>[AaPp])?\.?[Mm]?\.?)?\s*$"
)
COMMA_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?")
PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ]+)")
BLANK = " "  # between a date and a clock
CLOCK_ALONE = re.compile(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?(\s*[AaPp]\.?[Mm]\.?)?")
DATE_ALONE = re.compile(r"[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}([./-])[0-9]{1,2}\1([0-9]{4}|[0-9]{2})")
DAYS = ("date", "day", "fecha", "dia", "jour", "data", "giorno", "datum", "tag")
CLOCKS = ("time", "clock", "starttime", "timeofday", "uhrzeit", "zeit", "hora", "heure", "ora", "tijd")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
PER_SECOND = re.compile(r"\s*(?:/s|ps)$")
CLOCK = re.compile(r"(?:([0-9]+)(?:-|\s*d(?:ays?)?,?\s+|\s+))?(?:([0-9]+):)?([0-9]{1,2}):([0-9]{1,2}(?:\.[0-9]+)?)")
ISO_DURATION = re.compile(r"P(?:([0-9.]+)D)?(?:T(?:([0-9.]+)H)?(?:([0-9.]+)M)?(?:([0-9.]+)S)?)?", re.IGNORECASE)
DAY_S, HOUR_S, MINUTE_S = 86_400, 3_600, 60
IN_DURATIONS = FACTORS["s"] | {"m": 60.0}  # 1m 2s: nobody writes metres or months there
EXPRESSION = r"^/Expr\(.*\)/$"  # of HTCondor: a value that it would work out when asked
UNIT_SPREAD = 3  # a unit is told by values that come within this factor of it
CENTURY = 2000


@dataclass(frozen=True)
class Meaning:
    """Which columns of a table one of ours is made of, and how their values are written.

    parts: each a row of alternatives, of which the first with a value counts; several are joined by slashes, a date and
    a clock by a blank (joint). unit: of its numbers, empty for our own. has_commas: 1.234,5 is 1234.5. order: of local
    dates. is_exact: the table calls it as we do, or the user said so."""

    parts: tuple[tuple[str, ...], ...]
    unit: str = ""
    has_commas: bool = False
    order: Order = ""
    is_exact: bool = False
    joint: str = "/"

    @property
    def theirs(self) -> list[str]:
        """All columns of the table that it needs."""
        return [name for part in self.parts for name in part]

    def in_words(self, ours: str, dimension: Dimension | None) -> str:
        """What was understood: read `dur_s` as runtime_s in seconds."""
        names = self.joint.join(", else ".join(f"`{name}`" for name in part) for part in self.parts)
        unit = self.unit.lower() if dimension == "s" else self.unit
        unit = {"s": "seconds", "B": "bytes", "binary": "bytes"}.get(unit, unit)
        unit = unit or {"s": "seconds", "bytes": "bytes"}.get(dimension or "", "")
        details = [f" in {unit}" if unit and dimension else "", ", with decimal commas" if self.has_commas else ""]
        return f"read {names} as {ours}{''.join(details)}{f', the {self.order} first' if self.order else ''}"


def single_column(name: str, *, is_exact: bool = False, unit: str = "") -> Meaning:
    """The meaning of a single column."""
    return Meaning(((name,),), unit, is_exact=is_exact)


def meaning_of(spec: str, names: Collection[str], unit: str = "") -> Meaning | None:
    """The columns of `a|b+c` (a, else b; a slash; c) that the table has; None where a part has none of its own."""
    parts = [tuple(name for name in part.split("|") if name in names) for part in spec.split("+")]
    return Meaning(tuple(parts), unit) if all(parts) else None


def named(
    names: Sequence[str], aliases: Sequence[str], taken: Collection[str], dimension: Dimension | None = None
) -> Iterator[tuple[str, str]]:
    """Columns that are called by one of the aliases, the first alias first, each with the unit that its name ends in.

    dimension: of what is measured: only then a name may end in a unit (`Duration (min)`), and `cpus` is no `cpu_s`."""
    keys: dict[str, tuple[str, str]] = {}
    for name in names:
        if name in taken or not name:
            continue
        unit = ""
        if dimension:
            try:
                unit = unit_in_name(name, dimension) or ""
            except ValueError:
                continue
        keys.setdefault(key_of(name), (name, unit))
        if unit:
            keys.setdefault(key_of(name).removesuffix(key_of(unit)), (name, unit))
    for alias in aliases:
        name, unit = keys.get(key_of(alias), ("", ""))
        is_plural = dimension and not unit and unit_in_name(alias, dimension) == "s"
        if name and not is_plural:
            yield name, unit


def named_in_words(
    names: Sequence[str], words: Sequence[str], beside: Collection[str], taken: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Columns whose names have one of these words, the first first, and beside it only words that say nothing more.

    Such as `Last start`, `TS_START_MS` or `Heure de début`, with the unit of time that the name ends in, if any."""
    split = {
        name: [word.lower() for word in WORD.findall(without_accents(name))] for name in names if name not in taken
    }
    for word in words:
        for name, parts in split.items():
            if word in parts and all(part == word or part in beside for part in parts):
                yield name, parts[-1] if parts[-1] in FACTORS["s"] else ""


def trimmed(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Texts without blanks around them, words for missing values (-, NA, null, …) and expressions as missing."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    is_missing = pc.or_(pc.is_in(pc.utf8_lower(text), pa.array(MISSING)), pc.match_substring_regex(text, EXPRESSION))
    return pc.if_else(is_missing, None, text)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column holds texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether a column holds numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def merged(table: pa.Table, meaning: Meaning) -> pa.ChunkedArray:
    """The column that a meaning makes of those of a table."""
    if len(meaning.theirs) == 1:
        return table[meaning.theirs[0]]
    parts = []
    for part in meaning.parts:
        columns = [trimmed(table[name].cast(pa.string())) for name in part]
        parts.append(pc.coalesce(*columns) if len(columns) > 1 else columns[0])
    if len(parts) == 1:
        return pa.chunked_array(parts)
    nulls = "emit_null" if meaning.joint == BLANK else "skip"  # a date without its clock is no time
    column = pc.binary_join_element_wise(*parts, meaning.joint, null_handling=nulls)
    return pa.chunked_array([column])


def distinct_texts(column: pa.ChunkedArray | pa.Array) -> list[str]:
    """The texts of a column, each once; none for a column of another type."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not is_text(kind):
        return []
    return [str(text) for text in pc.unique(trimmed(column.cast(pa.string()))).to_pylist() if text is not None]


def are_all(pattern: re.Pattern[str], values: Sequence[str]) -> bool:
    """Whether there are texts, and each is of this form."""
    return bool(values) and all(pattern.fullmatch(value) for value in values)


def with_dates(table: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
    """The table with the date before the clock where it has them in two columns (Date, Time), and that in words.

    The column of the clock then has both, and that of the date is gone; any other table is as it was."""
    names = [name for name in table.column_names if table.column_names.count(name) == 1]
    pair = [
        next((name for name, _ in named(names, aliases, ()) if are_all(form, distinct_texts(table[name]))), "")
        for aliases, form in ((DAYS, DATE_ALONE), (CLOCKS, CLOCK_ALONE))
    ]
    if not all(pair):
        return table, ()
    date, clock = pair
    moments = merged(table, Meaning(((date,), (clock,)), joint=BLANK))
    joined = table.set_column(table.column_names.index(clock), clock, moments).drop_columns([date])
    return joined, (f"read `{date}` and `{clock}` as one time",)


def has_decimal_commas(texts: Sequence[str]) -> bool:
    """Whether all texts are numbers that are written with commas for points, some with one."""
    return any("," in text for text in texts) and all(COMMA_NUMBER.fullmatch(text) for text in texts)


def date_order(path: str, columns: Mapping[str, Sequence[str]]) -> Order:
    """What comes first in the local dates of a table, its texts by column; empty where it has none.

    Days over 12, dots between the numbers (days first) and AM or PM (months first) tell; raises BadInput where nothing
    does."""
    matches = [(name, LOCAL_DATE.match(text)) for name, texts in columns.items() for text in texts]
    dates = [(name, date) for name, date in matches if date]
    if not dates:
        return ""
    if any(int(date["a"]) > 12 or date["mark"] == "." for _, date in dates):
        return "day"
    if any(int(date["b"]) > 12 or date["half"] for _, date in dates):
        return "month"
    name, date = dates[0]
    problem = f"{quoted(date[0])} in column {quoted(name)} may be day or month first"
    raise BadInput(path, problem, "dates that one can tell", "write them as 2024-12-31, or let a day over 12 be in it")


def iso_dates(column: pa.ChunkedArray | pa.Array, order: Order) -> pa.Array:
    """Local dates as ISO text, everything else as it is."""
    texts = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    codes, distinct = pd.factorize(texts.to_pandas())
    iso_texts = [*(_iso(str(text), order) for text in distinct), None]
    return pa.array([iso_texts[code] for code in codes], pa.string())


def _iso(text: str, order: Order) -> str:
    date = LOCAL_DATE.match(text)
    if date is None:
        return text
    day, month = (date["a"], date["b"]) if order == "day" else (date["b"], date["a"])
    year = int(date["year"]) + (CENTURY if len(date["year"]) == 2 else 0)
    hour = int(date["hour"] or 0)
    if date["half"]:
        hour = hour % 12 + (12 if date["half"] in "Pp" else 0)
    second = (date["second"] or "00").replace(",", ".")
    return f"{year:04}-{int(month):02}-{int(day):02}T{hour:02}:{date['minute'] or '00'}:{second}"


def duration_s(text: str) -> float | None:
    """Seconds of a duration in words (1h 2m 3s, 250 ms, 1.5 hours), by the clock (2-03:04:05, 04:05) or in ISO 8601."""
    text = text.strip().removeprefix("+").replace("(s)", "s")  # +000 00:01:30 of Oracle, 90 second(s) of LSF
    if match := CLOCK.fullmatch(text) or (ISO_DURATION.fullmatch(text) if len(text) > 1 else None):
        days, hours, minutes, seconds = map(float, match.groups(default="0"))
        return days * DAY_S + hours * HOUR_S + minutes * MINUTE_S + seconds
    parts = PART.findall(text)
    if not parts or PART.sub("", text).replace(",", "").strip():
        return None
    factors = [IN_DURATIONS.get(unit.lower()) for _, unit in parts]
    return None if None in factors else sum(float(n) * (f or 0) for (n, _), f in zip(parts, factors, strict=True))


def size_bytes(text: str) -> float | None:
    """Bytes of a size such as 1.5 GB (of 1,000) or 2 GiB."""
    part = PART.fullmatch(text.strip())
    factor = FACTORS["bytes"].get(part[2].lower()) if part else None
    return float(part[1]) * factor if part and factor else None


def amount_of(text: str) -> tuple[float, str] | None:
    """A number with its unit in base units, and which: %, B or s, or one of them or b (bits) in a second.

    Such as 45.1 %, 1.2 GiB, 3 MB/s, 24 Mb/s, 20 ms. None without a unit: a clock (10:05) has none, and 10M may
    be many things."""
    bare = PER_SECOND.sub("", text)
    rate = "/s" if bare != text else ""
    if bare.endswith("%"):
        value, unit = number_of(bare[:-1]), "%"
    elif (value := size_bytes(bare)) is not None:
        unit = "b" if rate and bare.endswith("b") else "B"
    else:
        value, unit = duration_s(bare) if bare[-1:].islower() else None, "s"
    return None if value is None or not math.isfinite(value) else (value, unit + rate)


def amounts(column: pa.Array, dimension: Dimension | None, factor: float, *, has_commas: bool) -> tuple[Any, Any]:
    """Numbers (n,), NaN where missing or bad, and which texts are none (n,).

    Plain numbers are multiplied by the factor; durations and sizes with units of their own are in seconds and bytes."""
    if has_commas and is_text(column.type):
        column = pc.replace_substring(pc.replace_substring(column, ".", ""), ",", ".")
    try:
        return column.cast(pa.float64(), safe=False).to_pandas().astype("float64") * factor, np.zeros(len(column), bool)
    except pa.ArrowInvalid:
        pass
    text = column.to_pandas()
    values = pd.to_numeric(text, errors="coerce").astype("float64") * factor
    rest = text.notna() & values.isna()
    if dimension:
        parse = duration_s if dimension == "s" else size_bytes
        values = values.fillna(text[rest].map(lambda cell: parse(str(cell))).astype("float64"))
    return values, (text.notna() & values.isna()).to_numpy()


def unit_of_values(numbers: pd.Series, spans_s: pd.Series) -> str:
    """The unit of durations, told by the seconds from start to end of the same rows; empty where they do not tell."""
    known = (numbers > 0) & (spans_s > 0)
    if not known.any():
        return ""
    ratio = float((spans_s[known] / numbers[known]).median())  # seconds in one of the unit
    near = {unit: abs(math.log(FACTORS["s"][unit] / ratio)) for unit in ("us", "ms", "s", "min", "h")}
    unit = min(near, key=lambda unit: near[unit])
    return unit if near[unit] < math.log(UNIT_SPREAD) else ""
