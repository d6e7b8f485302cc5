"""Users, job names and hosts replaced by keyed hashes, so that a log can be kept and shown without saying whose it is.

The same name gives the same pseudonym in every export, so runs still form the same groups. Without the key nobody
can try out a list of names. Queues, times and sizes stay as they are, and so do ids, except where a reader makes them
of names: then they get pseudonyms of 32 digits that links between runs and later exports share."""

import re
import secrets
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

import pandas as pd

from tasks.errors import BadSetting
from tasks.jobs.grouping import normalise_names
from tasks.jobs.params import GroupParams
from tasks.jobs.pseudonymous_lists import without_hosts
from tasks.storage import make_private_file

KEY_FILE = "pseudonym.key"
KEY_BYTES = 32
PSEUDONYM_BYTES = 6  # 12 hexadecimal digits: among a million names two are the same in 2 logs of 1,000
OTHERS = 0o077  # the rights of everybody but the owner
ID_BYTES = 16  # two runs with one id would become one run
QUOTED = re.compile(r"'.*'", re.DOTALL)
DEFAULTS = GroupParams()


def pseudonymise(
    rows: pd.DataFrame, key: bytes, params: GroupParams = DEFAULTS, *, with_ids: bool = False
) -> pd.DataFrame:
    """The rows with pseudonyms of 12 hexadecimal digits for users, names and given group keys.

    with_ids: also for run ids and for the ids of matched runs, as ids hold names.

    A name is normalised first (with the parameters that group the rows), so that runs of one recurring job share
    one pseudonym and group_keys finds the same groups as before. What is missing stays missing."""
    replaced = {
        "user_name": lambda texts: texts,
        "name": lambda texts: normalise_names(texts, params),
        "group_key": lambda texts: texts,
    }
    hidden = {
        column: _replaced(rows[column], column, key, prepare) for column, prepare in replaced.items() if column in rows
    }
    ids = [column for column in ("run_id", "matched_run_id") if with_ids and column in rows]
    hidden |= {column: _replaced(rows[column], "run_id", key, lambda texts: texts, ID_BYTES) for column in ids}
    return without_hosts(rows.assign(**hidden), lambda hosts: _replaced(hosts, "host", key, list))


def without_names(refused: pd.DataFrame) -> pd.DataFrame:
    """Refused lines without the line, and without the values that a reason quotes: both may hold users and names."""
    return refused.assign(raw="", reason=refused["reason"].str.replace(QUOTED, "'…'", regex=True))


def load_key(home: Path) -> bytes:
    """The secret key of this home folder, made on first use; readable by its owner only.

    Whoever makes it first wins: two processes at once get the same key. Losing the file means that later exports
    get other pseudonyms. Raises BadSetting if the file is damaged or others may read it."""
    path = home / KEY_FILE
    if not path.exists():
        make_private_file(path, secrets.token_bytes(KEY_BYTES))
    if path.stat().st_mode & OTHERS:
        raise BadSetting(f"{path}: others may read the key; expected a file of its owner alone; run chmod 600 on it")
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise BadSetting(
            f"{path}: {len(key)} bytes; expected a key of {KEY_BYTES}; put your own copy of it back (backups leave it "
            "out), or delete it to get another key and with it other pseudonyms"
        )
    return key


def _replaced(
    column: pd.Series,
    purpose: str,
    key: bytes,
    prepare: Callable[[Sequence[str]], Sequence[str]],
    n_bytes: int = PSEUDONYM_BYTES,
) -> pd.Series:
    """purpose goes into the hash: a user and a job of the same name get different pseudonyms."""
    codes, texts = pd.factorize(column.mask(column == ""))
    hashes = [
        blake2b(text.encode(), digest_size=n_bytes, key=key, person=purpose.encode()).hexdigest()
        for text in prepare([str(text) for text in texts])
    ]
    return pd.Series(pd.array([*hashes, None], dtype="str").take(codes), index=column.index, name=column.name)
