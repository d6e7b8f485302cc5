"""What a parser of a benchmark is, and the errors that any tool may print instead of results."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tasks.nodes.aspects import Aspect
from tasks.nodes.measured import ParsedLog
from tasks.nodes.tools.facts import Metrics
from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.lines import Line

EMPTY = "the log is empty"
CUT = "the log ends inside this line: it was cut off"
WARNING = re.compile(r"\bwarning\b", re.IGNORECASE)


@dataclass(frozen=True)
class Parser:
    """Reads the logs of one benchmark.

    metrics: every metric that a log can give. parse: never raises for a text, whatever it holds. signs: what only a
    log of this benchmark has; the first of it tells where such a log begins."""

    benchmark: str
    tool: str
    aspect: Aspect
    metrics: Metrics
    parse: Callable[[str], ParsedLog]
    signs: re.Pattern[str]


def report_errors(found: Gathering, lines: Sequence[Line], errors: re.Pattern[str], *, is_failure: bool = True) -> None:
    """A fault for each line in which the tool says that something went wrong.

    is_failure: whether such a line says that the benchmark failed; a warning never does."""
    for line in lines:
        if errors.search(line.text):
            told = f"{found.tool} reported an error: {line.text.strip()[:200]}"
            found.fault(line.place, told, line.text, is_failure=is_failure and not WARNING.search(line.text))


def report_others(found: Gathering, others: Sequence[Sequence[Line]], what: str) -> None:
    """A fault for each further log in the same text."""
    for part in others:
        found.fault(part[0].place, f"another log begins here; only the first {what} is read", part[0].text)


def empty_log(found: Gathering) -> ParsedLog:
    """The answer to a text without anything in it."""
    found.fault(1, EMPTY)
    return found.log()
