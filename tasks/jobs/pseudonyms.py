"""Users, job names and hosts replaced by keyed hashes, so that a log can be kept and shown without saying whose it is.

The same name gives the same pseudonym in every export, so runs still form the same groups. Without the key nobody
can try out a list of names. Queues, times and sizes stay as they are, and so do ids, except where a reader makes them
of names: then they get pseudonyms of 32 digits that links between runs and later exports share."""

import pandas as pd

from tasks.jobs.grouping import normalise_names
from tasks.jobs.params import GroupParams
from tasks.jobs.pseudonymous_lists import without_hosts
from tasks.pseudonyms import HOST, ID_BYTES, pseudonyms

DEFAULTS = GroupParams()


def pseudonymise(
    rows: pd.DataFrame, key: bytes, params: GroupParams = DEFAULTS, *, with_ids: bool = False
) -> pd.DataFrame:
    """The rows with pseudonyms of 12 hexadecimal digits for users, names and given group keys.

    with_ids: also for run ids and for the ids of matched runs, as ids hold names.

    A name is normalised first (with the parameters that group the rows), so that runs of one recurring job share
    one pseudonym and group_keys finds the same groups as before. What is missing stays missing."""
    replaced = {"user_name": list, "name": lambda texts: normalise_names(texts, params), "group_key": list}
    hidden = {column: pseudonyms(rows[column], column, key, to) for column, to in replaced.items() if column in rows}
    ids = [column for column in ("run_id", "matched_run_id") if with_ids and column in rows]
    hidden |= {column: pseudonyms(rows[column], "run_id", key, n_bytes=ID_BYTES) for column in ids}
    return without_hosts(rows.assign(**hidden), lambda hosts: pseudonyms(hosts, HOST, key))
