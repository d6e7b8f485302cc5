"""Compilation of generated C sources with gcc."""

import random
import subprocess

from tasks.workloads.record.programs.need import Need
from tasks.workloads.record.programs.place import Place
from tasks.workloads.record.programs.program import Input
from tasks.workloads.record.programs.service import Service
from tasks.workloads.record.programs.shell_load import spawn_loop

GCC = Need(("gcc",), "gcc")
HEADERS = Need(("/usr/include/stdio.h",), "libc6-dev", "file")
SOURCES_SEED, SOURCES = 5, 40
HEAD = "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
FUNCTION = """
struct record_{name} {{ double values[{size}]; int counts[{size}]; char text[{size}]; }};
double step_{name}(struct record_{name} *record, int rounds) {{
    double sum = {start}.0;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < {size}; i++) {{
            record->values[i] = record->values[i] * {factor} + (i % {modulus}) / (double)(round + 1);
            record->counts[i] += (record->values[i] > {start}.5) ? i : -round;
            if (record->counts[i] % {modulus} == 0) sum += record->values[i] - record->counts[(i * {modulus}) % {size}];
        }}
    switch (rounds % {modulus}) {{ case 0: return sum; case 1: return -sum; default: break; }}
    snprintf(record->text, {size}, "%f after %d", sum, rounds);
    return sum / (double)(1 + strlen(record->text));
}}
"""


class Compilation(Service):
    """Forty source files of some thousand lines in all; the objects are linked at the end of each pass."""

    name = "compile"
    title = "compilation: gcc on generated C sources"
    kin = "compress"
    needs = (GCC, HEADERS)
    inputs = (
        Input(
            "optimised",
            {"flags": "-O2", "jobs": 2, "sources": "large"},
            "two gcc at a time with -O2, 40 files of 60 functions",
        ),
        Input(
            "debug",
            {"flags": "-O0 -g", "jobs": 1, "sources": "small"},
            "one gcc at a time with -O0 -g, 40 files of 4 functions: many short processes",
        ),
    )

    other_inputs = (
        Input("one", {"flags": "-O1", "jobs": 1, "sources": "large"}, "one gcc at a time with -O1, the large files"),
        Input("short", {"flags": "-O2", "jobs": 2, "sources": "small"}, "two gcc at a time with -O2, the small files"),
    )

    def fill(self, place: Place) -> None:
        """Write the sources."""
        rng = random.Random(SOURCES_SEED)
        for kind, functions in (("large", 60), ("small", 4)):
            folder = place.folder / kind
            folder.mkdir(exist_ok=True)
            for number in range(SOURCES):
                (folder / f"part_{number}.c").write_text(
                    HEAD + "".join(_function(rng, number, f) for f in range(functions))
                )
            place.give(folder)

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Compile all sources and link them, again and again."""
        folder, flags, jobs = (input.options[key] for key in ("sources", "flags", "jobs"))
        compile_one = f"{GCC.path()} {flags} -w -fPIC -c {folder}/part_{{}}.c -o {folder}/part_{{}}.o"
        numbers = " ".join(map(str, range(SOURCES)))
        body = f"echo {numbers} | tr ' ' '\\n' | xargs -P {jobs} -I {{}} {compile_one}\n"
        return spawn_loop(place, body + f"{GCC.path()} -shared -o {folder}/all.so {folder}/part_*.o -lm")


def _function(rng: random.Random, file: int, number: int) -> str:
    return FUNCTION.format(
        name=f"{file}_{number}",
        size=rng.randint(16, 256),
        start=rng.randint(1, 99),
        factor=round(rng.uniform(0.5, 1.5), 3),
        modulus=rng.randint(3, 17),
    )
