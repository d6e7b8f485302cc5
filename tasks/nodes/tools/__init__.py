"""One parser for each benchmark whose logs are known, and which of them wrote a log."""

from tasks.nodes.tools import fio, ioping, iperf3, qperf, sysbench_cpu, sysbench_memory
from tasks.nodes.tools.parser import Parser

_ALL = (
    sysbench_cpu.PARSER, sysbench_memory.PARSER, fio.PARSER, ioping.PARSER, qperf.PARSER, iperf3.PARSER,
)  # fmt: skip
PARSERS: dict[str, Parser] = {parser.benchmark: parser for parser in _ALL}


def detect(text: str) -> str | None:
    """The benchmark whose log begins first in a text; None if there is none that is known."""
    first: dict[str, int] = {}
    for benchmark, parser in PARSERS.items():
        sign = parser.signs.search(text)
        if sign:
            first[benchmark] = sign.start()
    return min(first, key=lambda benchmark: first[benchmark]) if first else None
