"""Pseudonyms: keyed hashes in place of names, so that data can be kept and shown without saying whose they are.

The same name gives the same pseudonym in every export and in every word: a node of `nodes`, a machine of `workloads`
and a host of `jobs` that have one name have one pseudonym. Without the key nobody can try out a list of names."""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pandas as pd

from tasks.errors import BadSetting, without_quotes
from tasks.intake.files import NO_FAULTS
from tasks.storage import private_content

KEY_FILE = "pseudonym.key"
KEY_BYTES = 32
PSEUDONYM_BYTES = 6  # 12 hexadecimal digits: among a million names two are the same in 2 logs of 1,000
ID_BYTES = 16  # two runs with one id would become one run
HIDDEN_REASON = "not said under --pseudonymise, since it names what stands there; --dry-run without it says why"
HOST = "host"  # purpose of the pseudonyms of machines, in every word


def pseudonym(text: str, purpose: str, key: bytes, n_bytes: int = PSEUDONYM_BYTES) -> str:
    """The pseudonym of one name, in hexadecimal digits.

    purpose goes into the hash: a user and a job of the same name get different pseudonyms."""
    return blake2b(text.encode(), digest_size=n_bytes, key=key, person=purpose.encode()).hexdigest()


def pseudonyms(
    column: pd.Series,
    purpose: str,
    key: bytes,
    prepare: Callable[[Sequence[str]], Sequence[str]] = list,
    n_bytes: int = PSEUDONYM_BYTES,
) -> pd.Series:
    """A column with pseudonyms; what is missing or empty is missing. prepare: what is done to names first."""
    codes, texts = pd.factorize(column.mask(column == ""))
    hashes = [pseudonym(text, purpose, key, n_bytes) for text in prepare([str(text) for text in texts])]
    return pd.Series(pd.array([*hashes, None], dtype="str").take(codes), index=column.index, name=column.name)


def without_reasons(refused: pd.DataFrame) -> pd.DataFrame:
    """Refused lines without the line and without why, for readers whose reasons name what stands in the file."""
    reasons = [
        next((ending for ending in NO_FAULTS if reason.endswith(ending)), HIDDEN_REASON) for reason in refused["reason"]
    ]
    return refused.assign(raw="", reason=pd.Series(reasons, index=refused.index, dtype="str"))


def without_names(refused: pd.DataFrame) -> pd.DataFrame:
    """Refused lines without the line, and without the values that a reason quotes: both may hold users and names."""
    return refused.assign(raw="", reason=refused["reason"].map(without_quotes).astype("str"))


def replaced(frame: pd.DataFrame, columns: Mapping[str, tuple[str, int]], key: bytes) -> pd.DataFrame:
    """A frame with pseudonyms in some of its columns, as far as it has them. columns: purpose and bytes of each."""
    hidden = {
        name: pseudonyms(frame[name].astype("str"), purpose, key, n_bytes=n_bytes)
        for name, (purpose, n_bytes) in columns.items()
        if name in frame
    }
    return frame.assign(**hidden)


def hidden_options(options: Mapping[str, Any], key: bytes) -> dict[str, Any]:
    """What tells two ways of reading a file apart, without what they name: labels, nodes, parts of paths."""
    text = json.dumps(options, sort_keys=True, default=str)
    return {"pseudonymise": True, "read": pseudonym(text, "options", key, ID_BYTES)}


def hidden_path(path: str, key: bytes) -> str:
    """What the warehouse knows a file by: the same for every later export to the same (absolute) path."""
    return f"pseudonymised-{pseudonym(path, 'path', key)}"


def load_key(home: Path, *, is_kept: bool = True) -> bytes:
    """The secret key of this home folder, made on first use; readable by its owner only.

    Whoever makes it first wins: two processes at once get the same key. Losing the file means that later exports
    get other pseudonyms. is_kept: false for a look that leaves nothing behind: a key that it makes is forgotten.
    Raises BadSetting if the file is damaged or others may read it."""
    path = home / KEY_FILE
    if not path.exists() and not is_kept:
        return secrets.token_bytes(KEY_BYTES)
    key = private_content(path, lambda: secrets.token_bytes(KEY_BYTES))
    if len(key) != KEY_BYTES:
        raise BadSetting(
            f"{path}: {len(key)} bytes; expected a key of {KEY_BYTES}; put your own copy of it back (backups leave it "
            "out), or delete it to get another key and with it other pseudonyms"
        )
    return key
