"""Which runs are the same recurring job: the group key (Zhu et al., 3.1), and how much of a log recurs."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.names import normalise_name, normalise_names
from tasks.jobs.params import GroupParams

__all__ = ["Recurrence", "group_keys", "normalise_name", "normalise_names", "recurrence", "recurrence_of"]

SIGNATURE_CHARS = 8
MAX_KEY_CHARS = 200
NO_NAME = "(no name)"
HEX_SIGNATURE = re.compile(r"[0-9a-fA-F]{8,}")
DEFAULTS = GroupParams()


def group_keys(rows: pd.DataFrame, params: GroupParams = DEFAULTS) -> pd.Series:
    """The group key of each run: `name#plan` with a plan signature, else `name · user · 16 cpus`.

    rows: some of the columns group_key, name, plan_signature, user_name, requested_cpus and used_cpus. A key
    that the log itself gives stays; the size is what was asked for, else what was used. Long keys end in a hash
    of the whole. Returns text with the index of rows, never missing."""
    given, name, plan = (_coded(rows, column) for column in ("group_key", "name", "plan_signature"))
    name = _renamed(name, normalise_names(name.texts, params))
    has_user = (plan.codes < 0) & params.by_user
    user, size = _coded(rows, "user_name").only(has_user), _sizes(rows).only(plan.codes < 0)
    columns = (given, name, plan, user, size)
    group, example = _distinct(*(column.codes for column in columns))
    parts = zip(*(column.at(example) for column in columns), strict=True)
    keys = [_shortened(known or _key(*rest)) for known, *rest in parts]
    return pd.Series(pd.array(keys, dtype="str").take(group), index=rows.index, name="group_key")


@dataclass(frozen=True)
class _Coded:
    """A column as codes (-1: missing or empty) and the texts that they stand for."""

    codes: Any
    texts: list[str]

    def at(self, rows: Any) -> list[str]:
        """The texts of some rows; empty where there is none."""
        return [str(text) for text in np.array([*self.texts, ""], dtype="object")[self.codes[rows]]]

    def only(self, is_wanted: Any) -> "_Coded":
        """The same column, empty in all other rows."""
        return _Coded(np.where(is_wanted, self.codes, -1), self.texts)


def _coded(rows: pd.DataFrame, column: str) -> _Coded:
    if column not in rows:
        return _Coded(np.full(len(rows), -1), [])
    codes, texts = pd.factorize(rows[column].where(rows[column] != ""))
    return _Coded(codes, [str(text) for text in texts])


def _renamed(column: _Coded, texts: list[str]) -> _Coded:
    """The column with other texts, of which several may now be the same."""
    codes, distinct = pd.factorize(pd.Series(texts, dtype="object"))
    return _Coded(np.append(codes, -1)[column.codes], [str(text) for text in distinct])


def _sizes(rows: pd.DataFrame) -> _Coded:
    sizes = pd.Series(np.nan, index=rows.index)
    for column in ("requested_cpus", "used_cpus"):
        if column in rows:
            sizes = sizes.fillna(rows[column].astype("float64"))
    codes, values = pd.factorize(sizes)
    return _Coded(codes, [_size_text(float(value)) for value in values])


def _size_text(cpus: float) -> str:
    return "1 cpu" if cpus == 1 else f"{int(cpus)} cpus" if cpus.is_integer() else f"{cpus:g} cpus"


def _distinct(*codes: Any) -> tuple[Any, Any]:
    """The number of each row's combination of codes (-1 upwards), and a row for each combination."""
    group = np.zeros(len(codes[0]), dtype="int64")
    for code in codes:
        group = pd.factorize(group * (code.max(initial=-1) + 2) + code)[0]
    example = np.zeros(group.max(initial=-1) + 1, dtype="int64")
    example[group[::-1]] = np.arange(len(group))[::-1]
    return group, example


def _key(name: str, plan: str, user: str, size: str) -> str:
    if plan:
        return f"{name or NO_NAME}#{_short_signature(plan)}"
    return " · ".join(part for part in (name or NO_NAME, user, size) if part)


def _short_signature(plan: str) -> str:
    """Its first 8 characters where it is a hash, else the first 8 of a hash over it."""
    is_hash = HEX_SIGNATURE.fullmatch(plan)
    return plan[:SIGNATURE_CHARS] if is_hash else hashlib.sha256(plan.encode()).hexdigest()[:SIGNATURE_CHARS]


def _shortened(key: str) -> str:
    if len(key) <= MAX_KEY_CHARS:
        return key
    return f"{key[: MAX_KEY_CHARS - SIGNATURE_CHARS - 1]}…{hashlib.sha256(key.encode()).hexdigest()[:SIGNATURE_CHARS]}"


@dataclass(frozen=True)
class Recurrence:
    """How much of a log recurs. The shares are of its runs: those whose group has at least 2, 3, 20 runs."""

    n_runs: int
    n_groups: int
    recurring_share: float
    support_3_share: float
    support_20_share: float


def recurrence(rows: pd.DataFrame) -> Recurrence:
    """How much of these runs recurs; rows: column group_key."""
    return recurrence_of(rows["group_key"].value_counts())


def recurrence_of(support: pd.Series) -> Recurrence:
    """The same from the number of runs of each group, for logs that do not fit into memory; NaN without runs."""
    n_runs = int(support.sum())
    shares = [float(support[support >= least].sum()) / n_runs if n_runs else np.nan for least in (2, 3, 20)]
    return Recurrence(n_runs, int((support > 0).sum()), *shares)
