"""One parser for each benchmark whose logs are known, and which of them wrote a log."""

from tasks.nodes.tools import fio, ioping, iperf3, qperf, sysbench
from tasks.nodes.tools.parsing import Parser

_ALL = (*sysbench.PARSERS, fio.PARSER, ioping.PARSER, qperf.PARSER, iperf3.PARSER)
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
