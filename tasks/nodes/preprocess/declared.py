"""What the tools that whorl reads declare of their metrics."""

from tasks.nodes.preprocess.unification import Facts


def declared_facts() -> Facts:
    """Facts by benchmark and metric; foreign benchmarks have none."""
    from tasks.nodes.tools import PARSERS

    return {benchmark: parser.metrics for benchmark, parser in PARSERS.items()}
