"""Which runs are of one job: keys of groups, and names of jobs without what changes from run to run."""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.params import GroupParams, KeyPart

SIGNATURE_CHARS = 8
MAX_KEY_CHARS = 200
NO_NAME = "(no name)"
HEX_SIGNATURE = re.compile(r"[0-9a-fA-F]{8,}")
MAX_KEPT_DIGITS = 3
ID_FROM_DIGITS = 7
MIXED_FROM_CHARS, MIXED_FROM_SWITCHES = 8, 3  # x7f3k9q2: letters and digits change places at least three times
BATCH = 20_000  # names that make one text
MEMORY = 200_000  # words that a normaliser remembers
CONTEXT_CHARS = 32
SEPARATORS = "-_ .#:="
DEFAULTS = GroupParams()
COLUMNS: dict[KeyPart, str] = {
    **dict.fromkeys(("name", "full_name", "short_name"), "name"),
    **{"plan": "plan_signature", "user": "user_name", "limit": "requested_runtime_s"},
}  # of jobs.runs that parts of a key are made of, where they are not called so

PROGRAMS = "sh|bash|py|pl|r|jl|jar|exe|sql|hql|ipynb|nf|x|class|scala|bat|ps1"
DATA_FILES = (
    "parquet|csv|tsv|jsonl?|ndjson|avro|orc|txt|log|gz|zst|bz2|xz|zip|tar|xml|xlsx?|bam|sam|cram|fastq|fq|vcf|bed"
    "|h5|hdf5|nc|npy|npz|pkl|feather|arrow|db|sqlite|duckdb|dat|bin|out|in|png|jpe?g|tiff?|pdf|ya?ml|conf|cfg|ini"
)
PATHS = re.compile(  # s3://bucket/in, /data/in, ~/x, C:\in, in/part-7.csv, and words that slashes join
    r"""(?<![^\s=,;:"'()<>\[\]|{}])(?P<head>[^\s=,;:"'()<>\[\]|{}/\\]*+(?::(?=[/\\]))?)[/\\]+"""
    r"""(?P<rest>[^\s,;"'()<>\[\]|]*+)"""
)
PROGRAM = re.compile(rf"[/\\]([^/\\]+\.(?:{PROGRAMS})|(?<=bin[/\\])[^/\\]+)\Z", re.IGNORECASE)
LAST_OF_PATH = re.compile(r"[^/\\]+\Z")
DATA_FILE = re.compile(rf"\.(?:{DATA_FILES})\Z", re.IGNORECASE)

YEAR, MONTH, DAY = r"(?:199[0-9]|20[0-4][0-9])", r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12][0-9]|3[01])"
MONTH_NAME = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
CLOCK = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?:[ ]?[+-][0-9]{2}:?[0-9]{2}|[zZ])?"
AFTER_DATE = rf"(?:[tT_ -]?{CLOCK}|[tT]?[0-9]{{2,9}}[zZ]?)?(?![0-9])"
TIMES = re.compile(rf"(?<![0-9:]){CLOCK}(?![0-9:])")
YEAR_FIRST = re.compile(
    rf"""{YEAR}(?<![0-9]{{5}})(?:
        ([-_./])[0-9]{{1,2}}\1[0-9]{{1,2}}{AFTER_DATE}
      | {MONTH}{DAY}{AFTER_DATE}
      | (?<![A-Za-z][0-9]{{4}})[-_.]?(?:[wW][0-9]{{1,2}}|[qQ][1-4]|{MONTH})(?![0-9A-Za-z])
    )""",
    re.VERBOSE,
)
YEAR_ALONE = re.compile(rf"{YEAR}(?<![0-9]{{5}})(?![0-9])")
YEAR_LATER = re.compile(
    rf"""(?<![0-9])(?:
        [0-9]{{1,2}}([-./])[0-9]{{1,2}}\1{YEAR}{AFTER_DATE}
      | {YEAR}[-_. ]?{MONTH_NAME}(?:[-_. ]?[0-9]{{1,2}})?(?![0-9a-z])
      | [0-9]{{1,2}}[-_. ]?{MONTH_NAME}[-_. ]?{YEAR}(?![0-9])
      | (?<![a-z])(?:
            {MONTH_NAME}[-_. ]?[0-9]{{1,2}}(?:,[ ]|[-_., ]){YEAR} | {MONTH_NAME}[-_. ]?{YEAR} | q[1-4][-_. ]?{YEAR}
        )(?![0-9])
    )""",
    re.VERBOSE | re.IGNORECASE,
)

UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
UUIDS = re.compile(rf"(?<![0-9A-Za-z]){UUID}(?![0-9A-Za-z])")
PODS = re.compile(r"\{id\}-[b-df-hj-np-tv-z2456789]{5}(?![0-9A-Za-z])")  # what Kubernetes appends
IDS = re.compile(r"(?<![0-9A-Za-z])[0-9]{7,}(?![0-9A-Za-z])")
LONG_NUMBERS = re.compile(r"(?<![0-9A-Za-z])[0-9]{4,6}(?![0-9A-Za-z])")
WORDS = re.compile(r"(?<![A-Za-z])[A-Za-z]*+[0-9][0-9A-Za-z]*(?:(?:\.[0-9]{1,3})+(?![0-9A-Za-z]))?")
ALPHANUMERIC = re.compile(r"[0-9A-Za-z]+")
PAIRS = re.compile(r"([A-Za-z]*)([0-9]+)")
LAST_PART = re.compile(r"(?<=[^-_. ])[-_. ]+[^-_. ]*\Z")  # of a name: what stands behind its last separator
LAST_WORD = re.compile(r"[A-Za-z]+\Z")

HEX_WORDS = r"(?:ab|abc|ace|add|bad|bead|bed|cab|cafe|cd|db|dead|dec|decade|deed|ec|facade|face|fade|feb|feed)"
SHORT_HEX = re.compile(rf"(?!{HEX_WORDS}[0-9]+\Z)(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{{7,15}}", re.IGNORECASE)
LONG_HEX = re.compile(r"(?:0x)?[0-9a-f]{16,}", re.IGNORECASE)

APP_NUMBER = r"app [0-9]+"  # what the reader of Standard Workload Format calls an executable
WHOLE = re.compile(rf"[0-9a-fA-F]{{12,}}|{UUID}|{APP_NUMBER}")  # names that stay as they are
MAY_CHANGE = re.compile(r"[0-9/\\]|\}.*\{")
NUMBERS = ("date", "time", "id", "n", "hash")
BEHIND_ONE = "|".join(rf"(?<=\{{{name}\}})" for name in NUMBERS)
REPEATED = re.compile(rf"(?<=\}})(?:{BEHIND_ONE})[-_.:/+#]*\{{(?:{'|'.join(NUMBERS)})\}}")  # all but the first
REPEATED_PATHS = re.compile(r"\{path\}(?:[ ,:;]+\{path\})+")


def group_keys(rows: pd.DataFrame, params: GroupParams = DEFAULTS) -> pd.Series:
    """The group key of each run: `name#plan` with a plan signature, else `name · user · 16 cpus`.

    rows: some of the columns group_key, name, plan_signature, user_name, requested_cpus and used_cpus. A key
    that the log itself gives stays; the size is what was asked for, else what was used. With params.by it is the values
    of these columns instead, `user 7 · 16 cpus · limit 4:00:00`, as far as a run has them: columns of jobs.runs alone,
    so that runs in the warehouse can be grouped anew. Long keys end in a hash of the whole. Returns text with the
    index of rows, never missing."""
    if params.by:
        make: Callable[..., str] = _joined
        columns = [_part(rows, part, params) for part in params.by]
    else:
        given, name, plan = (_coded(rows, column) for column in ("group_key", "name", "plan_signature"))
        name = _renamed(name, normalise_names(name.texts, params))
        has_no_plan, both = plan.codes < 0, (_coded(rows, "user_name"), _sizes(rows))
        make, columns = _key, [given, name, plan]
        columns += [_Coded(np.where(has_no_plan, column.codes, -1), column.texts) for column in both]
    group, example = _distinct(*(column.codes for column in columns))
    keys = [_shortened(make(*words)) for words in zip(*(column.at(example) for column in columns), strict=True)]
    return pd.Series(pd.array(keys, dtype="str").take(group), index=rows.index, name="group_key")


def _part(rows: pd.DataFrame, part: KeyPart, params: GroupParams) -> "_Coded":
    if part == "cpus":
        return _sizes(rows)
    if part == "limit":
        codes, limits_s = pd.factorize(rows.get("requested_runtime_s", pd.Series(np.nan, index=rows.index)))
        return _Coded(codes, [f"limit {timedelta(seconds=float(limit_s))}" for limit_s in limits_s])
    column = _coded(rows, COLUMNS.get(part, part))
    if part in ("name", "short_name"):
        names = normalise_names(column.texts, params)
        return _renamed(column, names if part == "name" else [LAST_PART.sub("", name) for name in names])
    return _Coded(column.codes, [f"#{_short_signature(text)}" for text in column.texts]) if part == "plan" else column


@dataclass(frozen=True)
class _Coded:
    """A column as codes (-1: missing or empty) and the texts that they stand for."""

    codes: Any
    texts: list[str]

    def at(self, rows: Any) -> list[str]:
        """The texts of some rows; empty where there is none."""
        return [str(text) for text in np.array([*self.texts, ""], dtype="object")[self.codes[rows]]]


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
    texts = ("1 cpu" if n == 1 else f"{int(n)} cpus" if n.is_integer() else f"{n:g} cpus" for n in map(float, values))
    return _Coded(codes, list(texts))


def _distinct(*codes: Any) -> tuple[Any, Any]:
    """The number of each row's combination of codes (-1 upwards), and a row for each combination."""
    group = np.zeros(len(codes[0]), dtype="int64")
    for code in codes:
        group = pd.factorize(group * (code.max(initial=-1) + 2) + code)[0]
    example = np.zeros(group.max(initial=-1) + 1, dtype="int64")
    example[group[::-1]] = np.arange(len(group))[::-1]
    return group, example


def _key(given: str, name: str, plan: str, user: str, size: str) -> str:
    return given or (f"{name or NO_NAME}#{_short_signature(plan)}" if plan else _joined(name or NO_NAME, user, size))


def _joined(*words: str) -> str:
    return " · ".join(filter(None, words)) or NO_NAME


def _short_signature(plan: str) -> str:
    """Its first 8 characters where it is a hash, else the first 8 of a hash over it."""
    is_hash = HEX_SIGNATURE.fullmatch(plan)
    return plan[:SIGNATURE_CHARS] if is_hash else hashlib.sha256(plan.encode()).hexdigest()[:SIGNATURE_CHARS]


def _shortened(key: str) -> str:
    if len(key) <= MAX_KEY_CHARS:
        return key
    return f"{key[: MAX_KEY_CHARS - SIGNATURE_CHARS - 1]}…{hashlib.sha256(key.encode()).hexdigest()[:SIGNATURE_CHARS]}"


def normalise_names(names: Sequence[str], params: GroupParams = DEFAULTS) -> list[str]:
    """Jobs' names with placeholders for what changes from run to run; doing it twice changes nothing.

    A name that is nothing but one hash or UUID (an anonymised log) stays whole. Many at once are faster: each pattern
    then runs over one long text. Source: Zhu et al., 3.1."""
    normaliser = _normaliser(tuple(params.kept_after), tuple(params.counted_after))
    normalised: list[str] = []
    for start in range(0, len(names), BATCH):
        normalised += normaliser.normalise(names[start : start + BATCH])
    return normalised


class _Normaliser:
    """The rules, with the words that one set of parameters names and with a memory for words seen before."""

    def __init__(self, kept_after: Iterable[str], counted_after: Iterable[str]) -> None:
        self.kept_after = frozenset(word.lower() for word in kept_after)
        self.counted_after = frozenset(word.lower() for word in counted_after)
        self.words: dict[str, str] = {}

    def normalise(self, names: Sequence[str]) -> list[str]:
        names = [" ".join(name.split()) for name in names]
        changed = self._changed(names)
        return [changed.get(name, name) for name in names]

    def _changed(self, names: Iterable[str]) -> dict[str, str]:
        """What becomes of the names that do not stay: round after round, until they change no more.

        A round takes digits, slashes or placeholders away, so this ends."""
        left = [name for name in names if MAY_CHANGE.search(name) and not WHOLE.fullmatch(name)]
        if not left:
            return {}
        after = {name: now for name, now in zip(left, self._round(left), strict=True) if now != name}
        later = self._changed(set(after.values()))
        return {name: later.get(now, now) for name, now in after.items()} if later else after

    def _round(self, names: Sequence[str]) -> list[str]:
        lines = [PATHS.sub(_path, name) if "/" in name or "\\" in name else name for name in names]
        text = UUIDS.sub("{id}", "\n".join(lines))
        text = YEAR_FIRST.sub(_date, text)
        lines = text.split("\n")
        has_year = YEAR_ALONE.search  # a cheap test before an expensive pattern
        text = "\n".join(YEAR_LATER.sub(_date, line) if has_year(line) else line for line in lines)
        text = TIMES.sub("{time}", text)
        text = LONG_NUMBERS.sub("{n}", IDS.sub("{id}", text))
        text = PODS.sub("{id}", WORDS.sub(self._word, text))
        text = REPEATED_PATHS.sub("{path}", REPEATED.sub("", text))
        return text.split("\n")

    def _word(self, match: re.Match[str]) -> str:
        """A word with digits in it, perhaps with decimals behind."""
        word, dot, tail = match[0].partition(".")
        if not word.isdigit():
            kept = self._mixed(word)
            return kept + dot + (tail if kept == word else "{n}" if dot else "")
        if dot:  # 10.0.0.12 is an address, 3.5.1 a version, 0.5 a number
            return {0: "{n}", 1: match[0], 2: "{id}"}.get(tail.count("."), "{n}")
        start = match.start()
        before = LAST_WORD.search(match.string[max(0, start - CONTEXT_CHARS) : start].rstrip(SEPARATORS))
        return word if before and before[0].lower() in self.kept_after else "{n}"

    def _mixed(self, word: str) -> str:
        known = self.words.get(word)
        if known is None:
            known = _code(word) or PAIRS.sub(self._glued, word)
            if len(self.words) < MEMORY:
                self.words[word] = known
        return known

    def _glued(self, match: re.Match[str]) -> str:
        """Letters and the number right behind them (or a number that letters follow)."""
        word, digits = match[1], match[2]
        known = word.lower()
        is_padded = len(digits) == MAX_KEPT_DIGITS and digits.startswith("0") and known not in self.kept_after
        if len(digits) <= MAX_KEPT_DIGITS and not is_padded and known not in self.counted_after:
            return match[0]
        return word + ("{id}" if len(digits) >= ID_FROM_DIGITS else "{n}")


_normaliser = lru_cache(maxsize=16)(_Normaliser)


def _path(match: re.Match[str]) -> str:
    """{path}; the file name of a program, which a path is that is all of a name; or the words as they are, where
    slashes only join them (team/etl)."""
    program = PROGRAM.search(match[0])
    if program:
        return program[1]
    head, rest = match["head"], match["rest"]
    is_rooted = head in ("", "~", ".", "..") or head.startswith("$") or head.endswith(":")
    if is_rooted and match[0] == match.string and not DATA_FILE.search(rest) and (last := LAST_OF_PATH.search(rest)):
        return last[0]
    return "{path}" if (is_rooted and rest) or DATA_FILE.search(rest) else match[0]


def _date(match: re.Match[str]) -> str:
    """{date}, unless the digits are a part of a hash and only look like one."""
    text, start, stop = match.string, match.start(), match.end()
    if text[start - 1 : start].isalnum() or text[stop : stop + 1].isalnum():
        while start and text[start - 1].isalnum():
            start -= 1
        word = ALPHANUMERIC.match(text, start)
        if word and word.end() >= stop and _code(word[0]):
            return match[0]
    return "{date}"


def _code(word: str) -> str:
    """{hash} or {id} for a word that no person chose, else nothing."""
    if len(word) < ID_FROM_DIGITS:
        return ""
    if LONG_HEX.fullmatch(word):
        return "{hash}"
    switches = sum(left.isdigit() != right.isdigit() for left, right in pairwise(word))
    is_mixed = len(word) >= MIXED_FROM_CHARS and switches >= MIXED_FROM_SWITCHES
    return "{id}" if is_mixed or SHORT_HEX.fullmatch(word) else ""
