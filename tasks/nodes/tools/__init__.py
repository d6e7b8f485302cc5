"""One parser for each benchmark whose logs are known, which of them wrote a log, and all logs in a text."""

from collections import deque
from collections.abc import Iterator

from tasks.nodes.execution import ParsedLog
from tasks.nodes.tools import fio, ioping, iperf3, lines, qperf, sysbench
from tasks.nodes.tools.parsing import Parser, Piece, documents_in, split

_ALL = (*sysbench.PARSERS, fio.PARSER, ioping.PARSER, qperf.PARSER, iperf3.PARSER, *lines.PARSERS)
PARSERS: dict[str, Parser] = {parser.benchmark: parser for parser in _ALL}


def headlines(benchmark: str) -> dict[str, bool]:
    """The rates and latencies that a benchmark exists to report, and whether higher is better of each.

    Empty for a benchmark whose facts nobody declared. The order is that of the tool's table."""
    metrics = PARSERS[benchmark].metrics if benchmark in PARSERS else {}
    return {
        name: facts.higher_is_better
        for name, facts in metrics.items()
        if facts.is_headline and facts.higher_is_better is not None
    }


def resolution(benchmark: str, metric: str) -> float:
    """The step that all output of a tool rounds a metric to, in the canonical unit of its facts (s, B, B/s, 1/s, %).

    0.0 where the tool keeps digits rather than a step, and where nothing is known. A value of a few steps tells
    little."""
    facts = PARSERS[benchmark].metrics.get(metric) if benchmark in PARSERS else None
    return facts.resolution if facts else 0.0


def detect(text: str) -> str | None:
    """The benchmark whose log begins first in a text; None if there is none that is known."""
    first: dict[str, int] = {}
    for benchmark, parser in PARSERS.items():
        sign = parser.signs.search(text)
        if sign:
            first[benchmark] = sign.start()
    return min(first, key=lambda benchmark: first[benchmark]) if first else None


def logs_in(text: str) -> Iterator[tuple[str, ParsedLog]]:
    """Each log of a text with its benchmark, in their order: runs of the tools one after the other, and jobs of a run.

    What no tool wrote of a benchmark that is known has none, and nothing measured."""
    pieces = deque(_by_tool(text))
    while pieces:
        piece = pieces.popleft()
        if benchmark := detect(piece.text):
            logs, rest = PARSERS[benchmark].logs(piece)
            yield from ((benchmark, log) for log in logs)
            pieces.extendleft(reversed(rest))
        else:
            yield "", ParsedLog((), "", "", (), (), place=piece.place, text=piece.text)


def _by_tool(text: str) -> list[Piece]:
    """A text cut where another tool begins to write; no JSON is cut."""
    heads = [(parser.tool, parser.heads or parser.signs) for parser in PARSERS.values()]
    if len({tool for tool, signs in heads if signs.search(text)}) < 2:
        return [Piece(text)]
    spans = [(start, end) for start, end, _ in documents_in(text)]
    signs = sorted((match.start(), tool) for tool, pattern in dict(heads).items() for match in pattern.finditer(text))
    edges, writer = [], ""
    for sign, tool in signs:
        if tool != writer:
            edges.append(next((start for start, end in spans if start <= sign < end), sign))
            writer = tool
    lines = sorted({text.count("\n", 0, edge) + 1 for edge in edges[1:]} - {1})
    return split(Piece(text), [1, *lines])
