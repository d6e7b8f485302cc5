"""Job names without what changes from run to run: dates, times, ids, hashes, counters and input paths.

What goes leaves a placeholder: {date} (a date, with or without the time of day), {time} (a time of day alone),
{id} (an id of 7 digits or more, a UUID, a short hash), {n} (a number), {hash} (16 hexadecimal digits or more),
{path}. Which numbers stay is decided by their shape, not by their value, so that a counter keeps its group:

- glued to a word and at most three digits long they belong to it: q17, v2, s3, 10min, python3.11;
- so they do after a word of `kept_after`: query 17, stage-2;
- three parts are a version: spark-3.5.1;
- any other number goes: run 5, job.1234567, part-0007, and run7 for a word of `counted_after`."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from tasks.jobs import name_patterns as patterns
from tasks.jobs.params import GroupParams

MAX_KEPT_DIGITS = 3
ID_FROM_DIGITS = 7
MIXED_FROM_CHARS, MIXED_FROM_SWITCHES = 8, 3  # x7f3k9q2: letters and digits change places at least three times
BATCH = 20_000  # names that make one text
MEMORY = 200_000  # words that a normaliser remembers
CONTEXT_CHARS = 32
SEPARATORS = "-_ .#:="
DEFAULTS = GroupParams()
MAY_CHANGE, WHOLE = patterns.MAY_CHANGE.search, patterns.WHOLE.fullmatch


def normalise_name(name: str, params: GroupParams = DEFAULTS) -> str:
    """The job's name with placeholders for what changes from run to run; doing it twice changes nothing.

    A name that is nothing but one hash or UUID (an anonymised log) stays whole. Source: Zhu et al., 3.1."""
    return normalise_names([name], params)[0]


def normalise_names(names: Sequence[str], params: GroupParams = DEFAULTS) -> list[str]:
    """Many names at once, which is faster: each pattern then runs over one long text."""
    normaliser = _normaliser(tuple(params.kept_after), tuple(params.counted_after))
    found: list[str] = []
    for start in range(0, len(names), BATCH):
        found += normaliser.normalise(names[start : start + BATCH])
    return found


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
        left = [name for name in names if MAY_CHANGE(name) and not WHOLE(name)]
        if not left:
            return {}
        after = {name: now for name, now in zip(left, self._round(left), strict=True) if now != name}
        later = self._changed(set(after.values()))
        return {name: later.get(now, now) for name, now in after.items()} if later else after

    def _round(self, names: Sequence[str]) -> list[str]:
        lines = [patterns.PATHS.sub(_path, name) if "/" in name or "\\" in name else name for name in names]
        text = patterns.UUIDS.sub("{id}", "\n".join(lines))
        text = patterns.YEAR_FIRST.sub(_date, text)
        lines = text.split("\n")
        has_year = patterns.YEAR_ALONE.search  # a cheap test before an expensive pattern
        text = "\n".join(patterns.YEAR_LATER.sub(_date, line) if has_year(line) else line for line in lines)
        text = patterns.TIMES.sub("{time}", text)
        text = patterns.LONG_NUMBERS.sub("{n}", patterns.IDS.sub("{id}", text))
        text = patterns.PODS.sub("{id}", patterns.WORDS.sub(self._word, text))
        text = patterns.REPEATED_PATHS.sub("{path}", patterns.REPEATED.sub("", text))
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
        before = patterns.LAST_WORD.search(match.string[max(0, start - CONTEXT_CHARS) : start].rstrip(SEPARATORS))
        return word if before and before[0].lower() in self.kept_after else "{n}"

    def _mixed(self, word: str) -> str:
        known = self.words.get(word)
        if known is None:
            known = _code(word) or patterns.PAIRS.sub(self._glued, word)
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


@lru_cache(maxsize=16)
def _normaliser(kept_after: tuple[str, ...], counted_after: tuple[str, ...]) -> _Normaliser:
    return _Normaliser(kept_after, counted_after)


def _path(match: re.Match[str]) -> str:
    """{path}; the file name of a program; or the words as they are, where slashes only join them (team/etl)."""
    program = patterns.PROGRAM.search(match[0])
    if program:
        return program[1]
    head, rest = match["head"], match["rest"]
    is_rooted = head in ("", "~", ".", "..") or head.startswith("$") or head.endswith(":")
    return "{path}" if (is_rooted and rest) or patterns.DATA_FILE.search(rest) else match[0]


def _date(match: re.Match[str]) -> str:
    """{date}, unless the digits are a part of a hash and only look like one."""
    text, start, stop = match.string, match.start(), match.end()
    if text[start - 1 : start].isalnum() or text[stop : stop + 1].isalnum():
        while start and text[start - 1].isalnum():
            start -= 1
        word = patterns.ALPHANUMERIC.match(text, start)
        if word and word.end() >= stop and _code(word[0]):
            return match[0]
    return "{date}"


def _code(word: str) -> str:
    """{hash} or {id} for a word that no person chose, else nothing."""
    if len(word) < ID_FROM_DIGITS:
        return ""
    if patterns.LONG_HEX.fullmatch(word):
        return "{hash}"
    switches = sum(one.isdigit() != other.isdigit() for one, other in pairwise(word))
    is_mixed = len(word) >= MIXED_FROM_CHARS and switches >= MIXED_FROM_SWITCHES
    return "{id}" if is_mixed or patterns.SHORT_HEX.fullmatch(word) else ""
