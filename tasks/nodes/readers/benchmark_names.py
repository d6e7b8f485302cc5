"""Names of benchmarks and metrics that others gave, as names here; what a benchmark measures, as far as its name says.

Templates are told apart by their hashes: with the benchmark they make its type, by their first digits."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

from tasks.nodes.aspects import Aspect
from tasks.nodes.execution import ASPECTS

DIGEST_DIGITS = frozenset({8, 16, 32, 40, 56, 64, 96, 128})  # of the usual hashes
HEXADECIMAL = re.compile(r"[0-9a-f]+")
DECIMAL = re.compile(r"[0-9]+")
WHOLE_DIGITS = 8  # a text of so many is told whole in the name of a type
MAX_CHARS = 80
HASH_CHARS = 8
WORDS = re.compile(r"[a-z0-9]+")
PLAIN = re.compile(r"[A-Za-z0-9]*(?:[ _:,.()/-]+[A-Za-z0-9]+)*\)?")  # words, and what stands between words
BLANK = " _"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# of a tool: what all of its benchmarks measure; the first aspect with a word of the name counts
TOOLS: tuple[tuple[Aspect, frozenset[str]], ...] = (
    (
        "application",
        _words(
            "postgresql postgres pgbench mysql mariadb redis memcached nginx apache web llm spark hadoop kafka "
            "cassandra mongodb ycsb tpch tpcc"
        ),
    ),
    ("disk", _words("fio ioping iozone dd bonnie")),
    ("network", _words("iperf iperf3 qperf netperf sockperf ping")),
    ("memory", _words("mlc stream membench bw tinymembench pmbw")),
    ("system", _words("osbench lmbench unixbench passmark geekbench")),
    ("cpu", _words("openssl compression coremark linpack hpl stressng stressngfull stressngsinglecore")),
)


# of a test, where the tool measures many things
TESTS: tuple[tuple[Aspect, frozenset[str]], ...] = (
    ("memory", _words("memory mem memcpy memset malloc cache ram tlb mmap numa vm bigheap")),
    ("disk", _words("disk io fileio hdd aio filesystem dentry readahead seek iomix sync files fsync")),
    ("network", _words("network net tcp udp sock socket epoll")),
    (
        "system",
        _words(
            "context switch switching fork clone futex futexes semaphore semaphores pipe pipes poll mutex mutexes "
            "thread threads sched scheduler syscall syscalls message messages passing signal signals process processes "
            "system kernel sendfile timer clock exec"
        ),
    ),
    (
        "cpu",
        _words(
            "cpu crypto crypt matrix vector math hash sha float floating integer int prime primes sort qsort compress "
            "bitops branch bsearch stress fft atomic avl wide function calls glibc c string 3d pi ackermann hanoi jpeg "
            "zlib x86 rdrand ops opcode multi"
        ),
    ),
)


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
    n_used = Counter(_joined(*pair) for pair in dict.fromkeys(names) if _is_told(*pair))
    return [
        one if n_used[one] == 1 and _is_told(*pair) else _with_hash(one, "\n".join(pair))
        for pair, one in ((pair, _joined(*pair)) for pair in names)
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
    told = given.lower()
    is_digest = len(told) in DIGEST_DIGITS and HEXADECIMAL.fullmatch(told)
    if is_digest and (len(told) == WHOLE_DIGITS or not DECIMAL.fullmatch(told)):
        return told
    return hash_of(given)


def template_hash(template: str | None, given: str | None) -> str | None:
    """The hash that is given, else that of the template; None for none."""
    if given:
        return as_hash(given)
    return hash_of(template) if template else None


def _is_told(suite: str, test: str) -> bool:
    """Whether their name holds all that the texts say."""
    return 0 < len(_joined(suite, test)) <= MAX_CHARS and all(
        PLAIN.fullmatch(text.strip(BLANK)) for text in (suite, test)
    )


def _first(table: tuple[tuple[Aspect, frozenset[str]], ...], said: set[str]) -> Aspect | None:
    return next((aspect for aspect, known in table if said & known), None)


def _joined(suite: str, test: str) -> str:
    one, other = slug(suite), slug(test)
    return other if other == one or other.startswith(f"{one}-") else "-".join(part for part in (one, other) if part)


def _with_hash(spelled: str, text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARS]
    return f"{spelled[: MAX_CHARS - HASH_CHARS - 1].rstrip('-')}-{digest}".lstrip("-")
