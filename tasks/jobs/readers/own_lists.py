"""Columns of jobs.runs that hold lists (vertices, skyline, skus), from Parquet lists of structs."""

import pyarrow as pa
import pyarrow.compute as pc

from tasks.errors import BadInput
from tasks.jobs.columns import ALL_COLUMNS, TIMESTAMP
from tasks.jobs.readers.own_times import in_microseconds

KEYS = {"skus": ("sku",), "vertices": ("vertex",), "skyline": ("at_s", "tokens")}  # fields that have to be there
LARGEST = 2**31 - 1  # of a 32-bit number; larger ones are missing
MAX_TYPE_CHARS = 100  # of a type in a message


def check_list_type(path: str, ours: str, theirs: str, kind: pa.DataType) -> None:
    """Raise BadInput unless a column is a list of structs whose fields can hold what ours mean.

    Fields that are not ours are ignored; of ours those in KEYS are needed."""
    expected = _shown(ALL_COLUMNS[ours][0].value_type)
    inner = kind.value_type if _is_list(kind) else None
    if pa.types.is_null(kind) or (inner is not None and pa.types.is_null(inner)):
        return
    if inner is None or not pa.types.is_struct(inner):
        raise BadInput(path, f"column '{theirs}' ({ours}) is of type '{_cut(kind)}'", expected, "convert it")
    names = [field.name for field in inner]
    for key in KEYS[ours]:
        if key not in names:
            raise BadInput(path, f"the entries of '{theirs}' ({ours}) have no field '{key}'", expected, "convert it")
    for wanted in ALL_COLUMNS[ours][0].value_type:
        if names.count(wanted.name) > 1:
            raise BadInput(path, f"field '{wanted.name}' stands twice in '{theirs}'", expected, "convert it")
        if wanted.name in names and not _fits(inner.field(wanted.name).type, wanted.type):
            found = _cut(inner.field(wanted.name).type)
            raise BadInput(path, f"field '{wanted.name}' of '{theirs}' is of type '{found}'", expected, "convert it")


def to_lists(ours: str, column: pa.Array, zone: str) -> pa.ListArray:
    """The lists in our type: fields in our order, absent ones missing, NaN missing, times in UTC.

    column: of a type that check_list_type lets pass. zone: of times that name none, UTC if empty."""
    wanted = ALL_COLUMNS[ours][0]
    if pa.types.is_null(column.type) or pa.types.is_null(column.type.value_type):
        return pa.nulls(len(column), wanted)
    if not pa.types.is_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    entries = pc.list_flatten(column)
    entry_type = wanted.value_type
    fields = [_field(entries, field, zone) for field in entry_type]
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    return pa.ListArray.from_arrays(
        offsets, pa.StructArray.from_arrays(fields, fields=list(entry_type)), type=wanted, mask=pc.is_null(column)
    )


def _field(entries: pa.StructArray, wanted: pa.Field, zone: str) -> pa.Array:
    if entries.type.get_field_index(wanted.name) < 0:
        return pa.nulls(len(entries), wanted.type)
    values = pc.struct_field(entries, wanted.name)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_floating(wanted.type):
        values = values.cast(wanted.type, safe=False)
        return pc.if_else(pc.is_nan(values), None, values)
    if pa.types.is_timestamp(wanted.type) and pa.types.is_timestamp(values.type):
        return _times(values, zone)
    if pa.types.is_integer(wanted.type) and pa.types.is_integer(values.type):
        values = pc.if_else(pc.less_equal(pc.abs(values.cast(pa.float64(), safe=False)), LARGEST), values, None)
    return values.cast(wanted.type, safe=False)


def _times(times: pa.TimestampArray, zone: str) -> pa.TimestampArray:
    """In UTC, without a zone; the hour that occurs twice is the first, as in the other columns."""
    times = in_microseconds(times)
    if times.type.tz is None and zone and zone != "UTC":
        times = pc.assume_timezone(times, zone, ambiguous="earliest", nonexistent="latest")
    return times.cast(pa.timestamp("us", "UTC")).cast(TIMESTAMP) if times.type.tz else times


def _fits(kind: pa.DataType, wanted: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(kind):
        return True
    if pa.types.is_string(wanted):
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
    if pa.types.is_timestamp(wanted):
        return bool(pa.types.is_timestamp(kind))
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_integer(kind))
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _shown(entry: pa.StructType) -> str:
    return f"a list of structs ({', '.join(f'{field.name} {field.type}' for field in entry)})"


def _cut(kind: pa.DataType) -> str:
    text = str(kind).replace("\n", " ")
    return text if len(text) <= MAX_TYPE_CHARS else f"{text[:MAX_TYPE_CHARS]}…"
