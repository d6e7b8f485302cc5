"""What the benchmarks of SpareCores' inspector print, as metrics."""

from collections.abc import Callable
from dataclasses import dataclass

from tasks.nodes.columns import Aspect
from tasks.nodes.readers.sparecores_json import compression, geekbench, llm, pgbench, stress_suite
from tasks.nodes.readers.sparecores_printed import Printed
from tasks.nodes.readers.sparecores_text import bw_mem, membench, openssl, pairs, passmark, redis, stress_ng, web

PRINTED = ("stdout",)


@dataclass(frozen=True)
class Output:
    """names: of benchmarks, those that end in * stand for all that begin so. parse: values of an output, and
    lines that cannot be read. files: where it stands, the first that there is."""

    names: tuple[str, ...]
    aspect: Aspect
    parse: Callable[[str], Printed]
    files: tuple[str, ...] = PRINTED

    def fits(self, benchmark: str) -> bool:
        """Whether a benchmark is one of these."""
        return any(benchmark.startswith(name[:-1]) if name.endswith("*") else benchmark == name for name in self.names)


OUTPUTS = (
    Output(("bw_mem",), "memory", bw_mem),
    Output(("membench",), "memory", membench),
    Output(("stressng", "stressngsinglecore"), "cpu", stress_ng),
    Output(("stressngfull",), "cpu", pairs),
    Output(("stressng_benchmarks",), "system", stress_suite),
    Output(("passmark",), "system", passmark),
    Output(("geekbench",), "system", geekbench, ("results.json", "stdout")),
    Output(("openssl",), "cpu", openssl),
    Output(("compression_text",), "cpu", compression),
    Output(("redis", "redis_*"), "application", redis),
    Output(("static_web",), "application", web),
    Output(("pgbench_*",), "application", pgbench),
    Output(("llm", "llm_*"), "application", llm),
)
