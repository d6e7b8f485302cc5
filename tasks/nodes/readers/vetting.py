"""What all readers share: names of benchmarks and metrics, cells of any type as ours, and which executions can be used.

Templates are told apart by their hashes: with the benchmark they make its type, by their first digits. Cells and checks
work on all rows at once."""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tasks.nodes.execution import ASPECTS, COUNTED, EXECUTION_COLUMNS, STATUSES, TIMESTAMP
from tasks.nodes.params import FUTURE_SLACK_S
from tasks.nodes.type_tables import Aspect

# the columns of nodes.executions that a row can give, by kind
TEXTS, TIMES, FLAGS, NUMBERS = (
    tuple(name for name, (own, _) in EXECUTION_COLUMNS.items() if own in kinds and name not in COUNTED)
    for kinds in ((pa.string(),), (TIMESTAMP,), (pa.bool_(),), (pa.float64(), pa.int64()))
)
DIGEST_DIGITS = frozenset({8, 16, 32, 40, 56, 64, 96, 128})  # of the usual hashes
HEXADECIMAL = re.compile(r"[0-9a-f]+")
DECIMAL = re.compile(r"[0-9]+")
WHOLE_DIGITS = 8  # a text of so many is told whole in the name of a type
MAX_CHARS = 80
HASH_CHARS = 8
WORDS = re.compile(r"[a-z0-9]+")
PLAIN = re.compile(r"[A-Za-z0-9]*(?:[ _:,.()/-]+[A-Za-z0-9]+)*\)?")  # words, and what stands between words
BLANK = " _"


# of a tool: what all of its benchmarks measure; the first aspect with a word of the name counts
TOOLS: dict[Aspect, str] = {
    "application": "postgresql postgres pgbench mysql mariadb redis memcached nginx apache web llm spark hadoop kafka "
    "cassandra mongodb ycsb tpch tpcc",
    "disk": "fio ioping iozone dd bonnie",
    "network": "iperf iperf3 qperf netperf sockperf ping",
    "memory": "mlc stream membench bw tinymembench pmbw",
    "system": "osbench lmbench unixbench passmark geekbench",
    "cpu": "openssl compression coremark linpack hpl stressng stressngfull stressngsinglecore",
}
TESTS: dict[Aspect, str] = {  # of a test, where the tool measures many things
    "memory": "memory mem memcpy memset malloc cache ram tlb mmap numa vm bigheap",
    "disk": "disk io fileio hdd aio filesystem dentry readahead seek iomix sync files fsync",
    "network": "network net tcp udp sock socket epoll",
    "system": "context switch switching fork clone futex futexes semaphore semaphores pipe pipes poll mutex mutexes "
    "thread threads sched scheduler syscall syscalls message messages passing signal signals process processes "
    "system kernel sendfile timer clock exec",
    "cpu": "cpu crypto crypt matrix vector math hash sha float floating integer int prime primes sort qsort compress "
    "bitops branch bsearch stress fft atomic avl wide function calls glibc c string 3d pi ackermann hanoi jpeg "
    "zlib x86 rdrand ops opcode multi",
}


def slug(text: str) -> str:
    """Words and numbers in lower case, joined by dashes."""
    return "-".join(WORDS.findall(text.lower()))


def metric_name(text: str) -> str:
    """The name of a metric that others gave: words and numbers in lower case, joined by underscores."""
    return "_".join(WORDS.findall(text.lower()))


def benchmark_slugs(names: Sequence[tuple[str, str]]) -> list[str]:
    """A name for each (suite, test): at most MAX_CHARS long, each another; the same for the same two texts.

    A name that is too long is cut, and one that two tests would share is told apart, by a hash of both texts. So is one
    whose text has signs that a name loses (`Copy+`), whatever else is in the file: it has one name in every export."""
    n_used = Counter(_joined(*pair) for pair in dict.fromkeys(names) if _is_lossless(*pair))
    return [
        joined if n_used[joined] == 1 and _is_lossless(*pair) else _with_hash(joined, "\n".join(pair))
        for pair, joined in ((pair, _joined(*pair)) for pair in names)
    ]


def aspect_of(benchmark: str, test: str = "") -> Aspect:
    """What a benchmark measures, by the words of its name and of its test; unknown where no word says.

    A name that begins with an aspect says it itself (cpu-sysbench)."""
    words = WORDS.findall(benchmark.lower())
    if words and words[0] in ASPECTS:
        return next(aspect for aspect in ASPECTS if aspect == words[0])
    if known := _first(TOOLS, set(words)):
        return known
    if {"perf", "bench"} <= set(words):
        return "system"
    return _first(TESTS, {*words, *WORDS.findall(test.lower())}) or "unknown"


def hash_of(template: str) -> str:
    """The hash of a template's text, 64 hexadecimal digits."""
    return hashlib.sha256(template.encode()).hexdigest()


def as_hash(given: str) -> str:
    """What somebody gave as a template's hash, as one whose first digits tell it apart.

    A name (template-1, template-2), a number or a digest of unusual length is hashed: its first digits may be those of
    another one."""
    digest = given.lower()
    is_digest = len(digest) in DIGEST_DIGITS and HEXADECIMAL.fullmatch(digest)
    if is_digest and (len(digest) == WHOLE_DIGITS or not DECIMAL.fullmatch(digest)):
        return digest
    return hash_of(given)


def template_hash(template: str | None, given: str | None) -> str | None:
    """The hash that is given, else that of the template; None for none."""
    if given:
        return as_hash(given)
    return hash_of(template) if template else None


def _is_lossless(suite: str, test: str) -> bool:
    """Whether their name holds all that the texts say."""
    is_plain = all(PLAIN.fullmatch(text.strip(BLANK)) for text in (suite, test))
    return is_plain and 0 < len(_joined(suite, test)) <= MAX_CHARS


def _first(table: Mapping[Aspect, str], words: set[str]) -> Aspect | None:
    return next((aspect for aspect, known in table.items() if words & set(known.split())), None)


def _joined(suite: str, test: str) -> str:
    suite_slug, other = slug(suite), slug(test)
    return (
        other
        if other == suite_slug or other.startswith(f"{suite_slug}-")
        else "-".join(part for part in (suite_slug, other) if part)
    )


def _with_hash(spelled: str, text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARS]
    return f"{spelled[: MAX_CHARS - HASH_CHARS - 1].rstrip('-')}-{digest}".lstrip("-")


CENTURY_S = 100 * 365.25 * 86_400
EARLIEST = np.datetime64("1970-01-01", "us")
MICROSECONDS = 1e6
SLACK = np.timedelta64(int(FUTURE_SLACK_S * MICROSECONDS), "us")
ID_CHARS = 1_000
Check = tuple[NDArray[np.bool_], str]
Reasons = NDArray[np.object_]
NEEDED = {
    "execution_id": "no execution id; expected one in each row",
    "node": "no node; expected the name of the machine",
    "benchmark": "no benchmark; expected its name",
}


def first_reasons(n_rows: int, checks: Sequence[Check]) -> Reasons:
    """For each row the reason of the first check that it fails, or an empty text. checks: mask (n_rows,) and reason."""
    reasons: Reasons = np.full(n_rows, "", dtype=object)
    for is_bad, reason in reversed(checks):
        if is_bad.any():
            reasons[is_bad] = reason
    return reasons


def time_checks(name: str, times: NDArray[np.datetime64]) -> list[Check]:
    """Times (datetime64[us], NaT: missing) that cannot be true."""
    latest = np.datetime64(datetime.now(UTC).replace(tzinfo=None), "us") + SLACK
    return [
        (times > latest, f"{name} lies in the future; expected a time that has passed, in UTC"),
        (times < EARLIEST, f"{name} is before 1970; expected a time, in UTC"),
    ]


def span_checks(
    started: NDArray[np.datetime64], ended: NDArray[np.datetime64], duration_s: NDArray[np.float64]
) -> list[Check]:
    """Durations (seconds, NaN: missing) that cannot be true."""
    return [
        (duration_s < 0, "duration_s is negative; expected seconds from start to end"),
        (ended < started, "ended_at is before started_at; expected start, then end"),
        (duration_s > CENTURY_S, "duration_s is more than 100 years; expected seconds"),
    ]


def vet(rows: Mapping[str, NDArray[Any]]) -> Reasons:
    """Why each execution cannot be used; empty where it can.

    rows: execution_id, node, benchmark (objects, None: missing), started_at, ended_at (datetime64[us]), duration_s, and
    where they are given status and aspect."""
    started, ended, duration_s = rows["started_at"], rows["ended_at"], rows["duration_s"]
    checks: list[Check] = [(_is_missing(rows[name]), reason) for name, reason in NEEDED.items()]
    for name, allowed in (("status", STATUSES), ("aspect", ASPECTS)):
        if name in rows:
            known = np.isin(rows[name].astype(str), (*allowed, "None"))
            checks.append((~known, f"{name} is not one of {', '.join(allowed)}"))
    checks += time_checks("started_at", started) + time_checks("ended_at", ended)
    return first_reasons(len(started), [*checks, *span_checks(started, ended, duration_s)])


class NoExecution(ValueError):
    """Why a file or folder is no execution."""


def vetted_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of one execution, end and duration each from the other. Raises NoExecution for what cannot be true."""
    started, ended = (np.array([facts.get(name)], dtype="datetime64[us]") for name in ("started_at", "ended_at"))
    ended, duration_s = completed_times(started, ended, np.array([facts.get("duration_s")], dtype=np.float64))
    rows: dict[str, Any] = {name: np.array([facts[name]], dtype=object) for name in NEEDED}
    reason = vet(rows | {"started_at": started, "ended_at": ended, "duration_s": duration_s})[0]
    if reason:
        raise NoExecution(reason)
    return {
        **facts,
        "ended_at": None if np.isnat(ended[0]) else ended[0].item(),
        "duration_s": None if np.isnan(duration_s[0]) else float(duration_s[0]),
    }


def completed_times(
    started: NDArray[np.datetime64], ended: NDArray[np.datetime64], duration_s: NDArray[np.float64]
) -> tuple[NDArray[np.datetime64], NDArray[np.float64]]:
    """End and duration, each from the other where it is missing."""
    with np.errstate(invalid="ignore"):
        is_span = ~np.isnat(ended - started) & (ended >= started)
        span_s = np.where(is_span, (ended - started) / np.timedelta64(1, "s"), np.nan)
        whole = np.where(np.isfinite(duration_s) & (np.abs(duration_s) <= CENTURY_S), duration_s, np.nan)
        microseconds = np.rint(np.nan_to_num(whole) * MICROSECONDS).astype("int64").astype("timedelta64[us]")
    from_duration = np.where(np.isnan(whole), np.datetime64("NaT", "us"), started + microseconds)
    return (
        np.where(np.isnat(ended), from_duration, ended).astype("datetime64[us]"),
        np.where(np.isnan(duration_s), span_s, duration_s),
    )


def _is_missing(texts: NDArray[Any]) -> NDArray[np.bool_]:
    return np.array([not text or len(text) > ID_CHARS for text in texts.tolist()], dtype=bool)
