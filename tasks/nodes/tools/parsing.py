"""What the parsers of all tools share: facts of metrics, a log while it is read, JSON, numbers, units, settings.

The spelling of units is kept, except where two tools mean different things. What is changed, always together with a
note here:
- sysbench before 1.0, fio before 3, ioping before 0.9 and iperf3 write KB, MB, mb, KBytes, GBytes and mean powers
  of 1,024: they become KiB, MiB, GiB. qperf's KB, MB and GB are powers of 1,000 and stay.
- qperf's Kb/sec, Mb/sec, Gb/sec (with --use_bits_per_sec) become Kbits/sec and so on, as iperf3 writes them.
- a prefix of a plain count is multiplied into the value: "5.34 k iops" is 5,340 iops, "34.3 K/sec" 34,300 /sec,
  "1.2 million" 1,200,000, fio's "IOPS=10.1k" 10,100 iops.
- qperf's "% cpus" is % (of one processor); sysbench's "per second" and "ops/sec" are /sec."""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from tasks.intake.files import RAW_CHARS
from tasks.nodes.execution import Fault, MetricValue, ParsedLog
from tasks.nodes.type_tables import Aspect

# any sign, nan and inf are let through here, so that they can be refused with their name
NUMBER = r"[-+]?(?:(?i:nan|inf(?:inity)?)|[0-9][0-9.,]*)"
PLAIN = re.compile(r"\+?[0-9]+(?:\.[0-9]+)?")  # no tool prints exponents in its text
GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
LARGEST = 2**63 - 1  # what no counter of a tool can reach, and what they print for an unset minimum
LONGEST_S = 1e9  # 31 years: sysbench prints an unset minimum as 18446744073709.55 ms
VALUE_SHOWN, ERROR_SHOWN = 40, 200  # characters, in a reason

TIMES_S = {
    "ns": 1e-9, "nsec": 1e-9, "us": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0, "sec": 1.0,
    "min": 60.0, "hour": 3600.0, "day": 86_400.0,
}  # fmt: skip
SIZES_B = {
    "B": 1, "bytes": 1, "kB": 1_000, "KB": 1_000, "MB": 1_000**2, "GB": 1_000**3, "TB": 1_000**4,
    "KiB": 1_024, "MiB": 1_024**2, "GiB": 1_024**3, "TiB": 1_024**4,
}  # fmt: skip
SPEEDS = (
    "bits/sec Kbits/sec Mbits/sec Gbits/sec Tbits/sec bytes/sec KB/sec MB/sec GB/sec TB/sec "
    "B/s kB/s MB/s GB/s KiB/s MiB/s GiB/s TiB/s MiB/sec"
)
SPELLED: dict[str, frozenset[str]] = {  # the units that logs may have, by the canonical one
    "s": frozenset(TIMES_S),
    "B": frozenset(SIZES_B),
    "B/s": frozenset(SPEEDS.split()),
    "1/s": frozenset({"/sec", "iops"}),
    "%": frozenset({"%"}),
    "s/GB": frozenset({"ns/GB", "us/GB", "ms/GB", "sec/GB"}),
    "": frozenset({""}),
}
COUNT_PREFIXES = {
    "": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15,
    "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
}  # fmt: skip
IN_BINARY = re.compile(r"(?:([kKmMgGtT])(?:[bB]|Bytes)?|[bB]|Bytes)((?:/s(?:ec)?)?)")

NO_TEXT = ("\0", "\ufffd")  # NUL, and what stands for bytes that are not UTF-8
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
WARNING = re.compile(r"\bwarning\b", re.IGNORECASE)
CUT = "the log ends inside this line: it was cut off"
# where a JSON document may begin: a brace or [{ that opens its line
OPENING = re.compile(r'^[ \t\ufeff]*(?P<start>\{[ \t]*(?=["}]|\r?$)|\[[ \t\r\n]*\{)', re.MULTILINE)
ABSENT = object()
ODD = re.compile(r"[^A-Za-z0-9_.,:%+/-]")
LONGEST_SETTING = 80
UNIX_S = (1e8, 4e9)  # from 1973 to 2096: other numbers are of a clock that was not set, or count from another start
CTIME = "%a %b %d %H:%M:%S %Y"
WAITING = "timeout"  # how long a tool waits for the other side is no part of the work

SETTING = "setting: "  # how `what` begins where a metric is one
DURATION = "duration"  # of the execution, where the log itself has no time to divide by
FACTS = re.compile(r"([-+=])(!?) (\S+)(?: per (\S+))?(?: ~(\S+))?")
BETTER = {"+": True, "-": False, "=": None}


@dataclass(frozen=True)
class MetricFacts:
    """What is known of a metric before any log is read.

    unit: canonical (a key of SPELLED). higher_is_better: None where neither is better: settings, durations, CPU use;
    for a cumulative metric, of the rate that it becomes. is_cumulative_over: the metric, or "duration", that it grows
    with and is to be divided by; None if it does not grow (Perona's rate normalisation). is_headline: whether it is one
    of the rates and latencies that the tool exists to report. resolution: the step, in the unit, that all output of the
    tool is rounded to, whatever the size of the value; 0 where digits are kept instead. at: where the tool writes it, a
    label of its text or a path of its JSON, with the unit that holds there; the first that a log has counts."""

    unit: str
    higher_is_better: bool | None
    is_cumulative_over: str | None
    aspect: Aspect
    what: str
    is_headline: bool = False
    resolution: float = 0.0
    at: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    @property
    def is_setting(self) -> bool:
        """Whether it says how the tool was called, not what it measured."""
        return self.what.startswith(SETTING)


Metrics = Mapping[str, MetricFacts]


def facts_of(aspect: Aspect, table: str) -> dict[str, MetricFacts]:
    """The facts of a table with a metric a line: NAME | SIGN UNIT per TIME ~STEP | PLACE=UNIT; … | what it is.

    SIGN: + more is better, - less is, = neither; a ! behind it: a headline. UNIT: 1 for a plain number. TIME: what a
    total is divided by; STEP: its resolution; PLACE: of `at`. The last two are left out where there is none."""
    by_name = {}
    for line in filter(None, map(str.strip, table.splitlines())):
        name, facts, places, what = (part.strip() for part in line.split("|"))
        match = FACTS.fullmatch(facts)
        if match is None:
            raise ValueError(f"{name}: {facts!r}; expected SIGN UNIT per TIME ~STEP")
        sign, headline, unit, over, step = match.groups()
        at = {
            place.strip(): unit for place, _, unit in (clause.rpartition("=") for clause in places.split(";")) if place
        }
        by_name[name] = MetricFacts(
            "" if unit == "1" else unit, BETTER[sign], over, aspect, what, bool(headline), float(step or 0), at
        )
    return by_name


@dataclass(frozen=True)
class LogLine:
    """One line. place: its number, from 1; is_cut: the text ends inside it, or at least without a line break."""

    place: int
    text: str
    is_cut: bool = False


@dataclass(frozen=True)
class Document:
    """A decoded JSON document, or what stands in it at a path, which ends in a slash. place: the line of its begin."""

    place: int
    content: object
    path: str = ""


@dataclass(frozen=True)
class Piece:
    """A text, or what of it begins at a line, from 1."""

    text: str
    place: int = 1


class Log:
    """A log while it is read: its lines, the values that can be used, and a fault for everything that cannot.

    The first value of a metric counts; others are faults. jobs: further logs of the same run. rest: logs of other runs
    in the same text."""

    def __init__(self, tool: str, metrics: Metrics, piece: Piece, name: str = "") -> None:
        """metrics: all that the tool can give. name: what the run calls it, where it has several."""
        self.tool, self.metrics, self.piece, self.name, self.version = tool, metrics, piece, name, ""
        self.text, self.lines = piece.text, lines_of(piece.text, piece.place)
        self.place = self.lines[0].place if self.lines else piece.place
        self.faults: list[Fault] = []
        self.jobs: list[Log] = []
        self.rest: list[Piece] = []
        self.started_at: datetime | None = None
        self._measured: dict[str, MetricValue] = {}
        self._settings: dict[str, str] = {}

    def __contains__(self, metric: str) -> bool:
        """Whether there is a value of the metric."""
        return metric in self._measured

    def value(self, metric: str) -> float | None:
        """The value of a metric as it was written; None if there is none."""
        return self._measured[metric].value if metric in self else None

    def base(self, metric: str) -> float | None:
        """The value of a metric in bytes, seconds or bytes a second; None if there is none."""
        return in_base(self._measured[metric].value, self._measured[metric].unit) if metric in self else None

    def take(
        self, metric: str, text: str, unit: str, line: LogLine, *, prefix: str = "", has_groups: bool = False
    ) -> None:
        """A value as it stands in a line. prefix: a key of COUNT_PREFIXES; has_groups: see as_number."""
        value = as_number(text, times=COUNT_PREFIXES[prefix], has_groups=has_groups)
        self._put(metric, value, text, unit, line.place, line.text)

    def take_groups(self, match: re.Match[str], line: LogLine, name_of: Callable[[str], str] = str) -> None:
        """The values of all groups of a match that took part: x in the unit of a group x_unit, times its x_prefix.

        name_of: gives the metric of a group. Plain counts and rates have no unit in the line; KB means 1,024 bytes."""
        groups = match.groupdict(default="")
        for name, text in groups.items():
            if text and (metric := name_of(name)) in self.metrics:
                plain_unit = "iops" if self.metrics[metric].unit == "1/s" else ""
                unit = in_binary(groups.get(f"{name}_unit", plain_unit)).replace("B/sec", "B/s")
                self.take(metric, text, unit, line, prefix=groups.get(f"{name}_prefix", ""))

    def take_json(self, metric: str, value: object, unit: str, place: int, path: str) -> None:
        """A value of a JSON document that begins at the place. path: of its keys."""
        self._put(metric, checked(value), str(value), unit, place, f"{path.replace('/', '.')}: {value}")

    def take_paths(
        self, document: Document, metrics: Metrics, metric: str = "{}", names: Mapping[str, str] | None = None
    ) -> None:
        """The values of a document where a table says that they are.

        metric: what the names of the table are filled into. names: what {…} in a path stands for."""
        for name, facts in metrics.items():
            for path, unit in facts.at.items():
                whole = path.format_map(names or {})
                if (value := at_path(document.content, whole, ABSENT)) is not ABSENT:
                    self.take_json(metric.format(name), value, unit, document.place, document.path + whole)
                    break

    def drop(self, metrics: Iterable[str]) -> None:
        """Forget values that turn out not to be measured."""
        for metric in metrics:
            self._measured.pop(metric, None)

    def fault(self, place: int, reason: str, raw: str = "", *, is_failure: bool = False) -> None:
        """Something that could not be used. is_failure: see Fault."""
        self.faults.append(Fault(place, reason, raw[:RAW_CHARS], is_failure))

    def fault_lines(self, lines: Sequence[LogLine], errors: re.Pattern[str], *, is_failure: bool = True) -> None:
        """A fault for each line in which the tool says that something went wrong.

        is_failure: whether such a line says that the benchmark failed; a warning never does."""
        for line in lines:
            if errors.search(line.text):
                reason = f"{self.tool} reported an error: {line.text.strip()[:ERROR_SHOWN]}"
                self.fault(line.place, reason, line.text, is_failure=is_failure and not WARNING.search(line.text))

    def job(self, name: str, place: int) -> "Log":
        """A further log of the same run, such as another job of fio."""
        log = Log(self.tool, self.metrics, self.piece, name)
        log.version, log.place = self.version, place
        self.jobs.append(log)
        return log

    def split(self, places: Sequence[int], kept: int = 0) -> None:
        """Go on with one of the logs that begin at these lines; the others are the rest."""
        pieces = split(self.piece, places)
        self.piece = pieces.pop(kept)
        self.rest = [*(piece for piece in pieces if piece.text.strip()), *self.rest]
        self.text, self.place = self.piece.text, self.piece.place
        last = self.place + self.text.removesuffix("\n").count("\n")
        self.lines = [line for line in self.lines if self.place <= line.place <= last]

    def part(
        self,
        starts: Sequence[re.Pattern[str]],
        errors: re.Pattern[str],
        *,
        signs: re.Pattern[str] | None = None,
    ) -> list[LogLine]:
        """The lines of the first log in the text, or of the first with a sign; its version is in the first of starts.

        A log begins at a line that fits the first of the starts that any line fits; what stands before it belongs to
        it. Each line in which the tool says that something went wrong is a fault."""
        heads = [[line.place for line in self.lines if start.search(line.text)] for start in starts]
        edges = [self.lines[0].place, *next((places for places in heads if places), [])[1:]]
        with_sign = [line.place for line in self.lines if signs and signs.search(line.text)]
        self.split(edges, bisect_right(edges, with_sign[0]) - 1 if with_sign else 0)
        self.fault_lines(self.lines, errors)
        self.version = next((match[1] for line in self.lines if (match := starts[0].match(line.text))), "").rstrip(".")
        return self.lines

    def setting(self, name: str, text: str) -> None:
        """How the tool was called, where that is no metric; the first one of a name counts."""
        if text.strip():
            self._settings.setdefault(name, plain(text))

    def ended(self, at: datetime | None, runtimes: Iterable[str]) -> None:
        """When the benchmark ended, where the log tells only that: it began the longest of its run times before."""
        times_s = [time_s for metric in runtimes if (time_s := self.base(metric)) is not None]
        if at is not None and times_s:
            self.started_at = at - timedelta(seconds=max(times_s))

    def document(
        self, has_shape: Callable[[object], bool], goes_on: Callable[[object, object], bool] = lambda *_: False
    ) -> Document | None:
        """The first JSON document of a shape; broken ones are faults, further ones other logs.

        goes_on: whether a document is a later one of the same run as another; the last of these counts."""
        runs: list[list[Document]] = []
        for start, _, content in documents_in(self.text):
            place = self.piece.place + self.text.count("\n", 0, start)
            if isinstance(content, json.JSONDecodeError):
                self.fault(place, f"malformed JSON: {content.msg} in line {self.piece.place - 1 + content.lineno}")
            elif isinstance(content, Exception):
                self.fault(place, f"malformed JSON: {content}")
            elif runs and has_shape(content) and goes_on(runs[-1][-1].content, content):
                runs[-1].append(Document(place, content))
            elif has_shape(content):
                runs.append([Document(place, content)])
        self.split([self.place, *(run[0].place for run in runs[1:])])
        return runs[0][-1] if runs else None

    def parsed(self) -> ParsedLog:
        """All of it. A log without a value and without a fault gets the fault that there is nothing in it."""
        if not self._measured and not self.faults:
            self.fault(self.place, f"no result of {self.tool} in it")
        measured = tuple(self._measured[metric] for metric in self.metrics if metric in self)
        settings = {
            reading.metric: spelled(reading.value, reading.unit)
            for reading in measured
            if self.metrics[reading.metric].is_setting and not reading.metric.endswith(WAITING)
        }
        return ParsedLog(
            measured,
            self.tool,
            self.version,
            missing=tuple(metric for metric in self.metrics if metric not in self),
            faults=tuple(sorted(self.faults, key=lambda fault: fault.place)),
            settings=tuple(sorted((settings | self._settings).items())),
            started_at=self.started_at,
            name=self.name,
            place=self.place,
            text=self.text,
        )

    def _put(self, metric: str, value: float | str, shown: str, unit: str, place: int, raw: str) -> None:
        known = SPELLED[self.metrics[metric].unit]
        if metric in self:
            reason = "stands there twice; the first counts"
        elif isinstance(value, str):
            reason = value
        elif unit not in known:
            reason = f"has the unknown unit {unit!r}; expected one of {', '.join(sorted(known)) or 'none'}"
        elif value * TIMES_S.get(unit, 0) >= LONGEST_S:
            reason = "is longer than a machine lives"
        else:
            self._measured[metric] = MetricValue(metric, value, unit)
            return
        self.fault(place, f"{metric} ({shown[:VALUE_SHOWN]}) {reason}", raw)


@dataclass(frozen=True)
class Parser:
    """Reads the logs of one benchmark.

    metrics: every metric that a log can give. read: fills a log that is not empty. signs: what only a log of this
    benchmark has; the first of it tells where such a log begins. heads: these and what stands before them, which may be
    of another benchmark of the tool (a line with its version); None where that is nothing."""

    benchmark: str
    tool: str
    aspect: Aspect
    metrics: Metrics
    read: Callable[[Log], None]
    signs: re.Pattern[str]
    heads: re.Pattern[str] | None = None

    def logs(self, piece: Piece) -> tuple[list[ParsedLog], list[Piece]]:
        """The logs of the first run in a text, and what other runs have written.

        A fault for what cannot be used; never raises, whatever the text holds."""
        log = Log(self.tool, self.metrics, piece)
        if log.lines:
            self.read(log)
        else:
            log.fault(piece.place, "the log is empty")
        return [part.parsed() for part in (log, *log.jobs)], log.rest

    def parse(self, text: str) -> ParsedLog:
        """The first log of a text; others in it are faults, too."""
        (first, *jobs), rest = self.logs(Piece(text))
        places = sorted([*(job.place for job in jobs), *(piece.place for piece in rest)])
        rows = text.split("\n")
        others = [
            Fault(place, "another log begins here; only the first is read", rows[place - 1][:RAW_CHARS])
            for place in places
        ]
        return replace(first, faults=tuple(sorted([*first.faults, *others], key=lambda fault: fault.place)))


def split(piece: Piece, places: Sequence[int]) -> list[Piece]:
    """The parts of a text that begin at these lines, the last of which ends with it."""
    rows = piece.text.split("\n")
    edges = [place - piece.place for place in places]
    parts = ["\n".join([*rows[left:right], ""]) for left, right in pairwise(edges)]
    return [Piece(part, place) for part, place in zip([*parts, "\n".join(rows[edges[-1] :])], places, strict=True)]


def lines_of(text: str, first: int = 1) -> list[LogLine]:
    """The lines with something in them. Carriage returns end a line too (progress is written over itself).

    first: the number of the first line."""
    rows = text.removeprefix("\ufeff").split("\n")
    lines = []
    for place, row in enumerate(rows, first):
        segments = [segment for segment in ESCAPES.sub("", row).split("\r") if segment.strip()]
        is_last = place == first + len(rows) - 1
        lines += [LogLine(place, segment, is_last and at == len(segments)) for at, segment in enumerate(segments, 1)]
    return lines


def unreadable(text: str, faults: Sequence[Fault]) -> list[Fault]:
    """A fault for each line with bytes that are no text, which no other fault is about: its value may be lost."""
    known = {fault.place for fault in faults}
    rows = enumerate(text.split("\n"), 1) if any(mark in text for mark in NO_TEXT) else ()
    reason = "bytes that are no text in the line (was the disk full?); what it says may be missing"
    return [
        Fault(place, reason, row[:RAW_CHARS])
        for place, row in rows
        if place not in known and any(mark in row for mark in NO_TEXT)
    ]


def documents_in(text: str) -> Iterator[tuple[int, int, object]]:
    """Where each JSON document begins and ends, and what it holds: an error for one that is broken.

    What follows a broken one is looked through as well."""
    decoder, at = json.JSONDecoder(), 0
    while opening := OPENING.search(text, at):
        start, content = opening.start("start"), None
        try:
            content, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            content = error
            at = max(opening.end("start"), getattr(error, "pos", 0))  # up to there all of it was one document
        yield start, at, content


def looks_like_json(text: str) -> bool:
    """Whether a document begins somewhere."""
    return bool(OPENING.search(text))


def mapping(value: object) -> Mapping[str, object]:
    """The value if it is an object; else an empty one."""
    return value if isinstance(value, dict) else {}


def at_path(value: object, path: str, default: object = None) -> object:
    """What stands under keys and list positions, with slashes between them; the default if nothing does."""
    for key in path.split("/"):
        if isinstance(value, list):
            value = value[int(key)] if key.isdigit() and int(key) < len(value) else default
        else:
            value = mapping(value).get(key, default)
    return value


def as_number(text: str, *, times: int = 1, has_groups: bool = False) -> float | str:
    """The value of a text times a prefix, or the reason why it has none.

    has_groups: 65,536 is a number (qperf); elsewhere a comma may as well be a decimal point and is refused."""
    if has_groups and GROUPED.fullmatch(text):
        text = text.replace(",", "")
    if PLAIN.fullmatch(text):
        return checked(float(Decimal(text) * times))  # decimal: 34.3 times 1,000 is 34,300
    if "," in text:
        return "has a comma that may be a decimal point; expected a dot for decimals, as LC_ALL=C gives"
    if text.startswith("-") and PLAIN.fullmatch(text[1:]):
        return "is negative"
    if text.lower().lstrip("+-").startswith(("nan", "inf")):
        return "is no finite number"
    return "is no number"


def checked(value: object) -> float | str:
    """A finite number from nothing to what a counter can hold, or the reason why it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "is no number"
    if isinstance(value, float) and not math.isfinite(value):
        return "is no finite number"
    if value < 0:
        return "is negative"
    return float(value) if value < LARGEST else "is more than any counter holds"


def unix_time(value: object, per_second: int = 1) -> datetime | None:
    """The time of a number of seconds since 1970, or of parts of them; None for what is no such time."""
    number = checked(value)
    if isinstance(number, str) or not UNIX_S[0] <= number / per_second <= UNIX_S[1]:
        return None
    return datetime.fromtimestamp(number / per_second, UTC)


def wall_clock(text: object) -> datetime | None:
    """The time that C prints as `Thu Nov 26 22:48:05 2026`: of the machine's zone; None for what is no such time."""
    try:
        at = datetime.strptime(str(text).strip(), CTIME)
    except ValueError:
        return None
    return at if unix_time(at.replace(tzinfo=UTC).timestamp()) else None


def in_binary(unit: str) -> str:
    """KiB for a tool's K, KB, kb or KBytes that means 1,024 bytes, with its /s or /sec; other units as they are."""
    match = IN_BINARY.fullmatch(unit)
    if not match:
        return unit
    return f"{match[1].upper()}iB{match[2]}" if match[1] else f"B{match[2]}"


def in_base(value: float, unit: str) -> float:
    """A size in bytes, a time in seconds, a speed in bytes a second, anything else as it is."""
    per_second = unit.removesuffix("/s").removesuffix("/sec")
    return value * SIZES_B.get(per_second, TIMES_S.get(unit, 1.0))


def spelled(value: float, unit: str = "") -> str:
    """The value of a setting in base units, without decimals where it has none.

    Versions spell settings differently (1K, 1KiB, 4096B-4096B); so the same settings are the same text."""
    base = in_base(value, unit)
    return str(int(base)) if base == int(base) else f"{base:.6g}"


def plain(text: str) -> str:
    """A text of a tool as a setting: one word, not too long."""
    return ODD.sub("_", text.strip())[:LONGEST_SETTING]


def template_of(settings: Iterable[tuple[str, str]]) -> str:
    """The settings that make two logs the same work or another, as one text by their names; empty for none."""
    return " ".join(f"{name}={value}" for name, value in sorted(settings))
