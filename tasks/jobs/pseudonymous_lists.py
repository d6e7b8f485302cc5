"""Names inside the list columns of jobs.runs: hosts that ran a vertex or were offered to a run."""

import re
from collections.abc import Callable

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tasks.jobs.vetting_conditions import as_list_column

HOST_FIELDS = {"vertices": "sku", "skus": "sku"}  # the same host in both gets the same pseudonym
NO_HOST = re.compile(r"profile \d+")  # what the reader of Spark calls a resource profile


def without_hosts(rows: pd.DataFrame, hidden: Callable[[pd.Series], pd.Series]) -> pd.DataFrame:
    """The rows with pseudonyms in place of the hosts in their vertices and SKUs.

    Any SKU may be named after a host, whatever the reader; only what a reader of ours made up itself stays. hidden:
    gives pseudonyms for names."""
    columns = {name: _replaced(rows[name], name, field, hidden) for name, field in HOST_FIELDS.items() if name in rows}
    return rows.assign(**columns)


def _replaced(
    column: pd.Series, name: str, field: str, hidden: Callable[[pd.Series], pd.Series]
) -> pd.api.extensions.ExtensionArray:
    lists = pa.array(as_list_column(column, name))
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    entries = pc.list_flatten(lists)
    names = pd.Series(pc.struct_field(entries, field).to_pandas(), dtype="str")
    told = hidden(names).where(~names.str.fullmatch(NO_HOST).fillna(False), names)
    place = entries.type.get_field_index(field)
    fields = [pc.struct_field(entries, number) for number in range(entries.type.num_fields)]
    fields[place] = pa.array(told, type=pa.string(), from_pandas=True)
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    kept = pa.StructArray.from_arrays(fields, fields=list(entries.type), mask=pc.is_null(entries))
    return pd.arrays.ArrowExtensionArray(
        pa.ListArray.from_arrays(offsets, kept, type=lists.type, mask=pc.is_null(lists))
    )
