"""Programs that compute: Markov chains, a convolutional network, compilers and compressors."""

import random
import subprocess

from tasks.workloads.record.programs.place import Place
from tasks.workloads.record.programs.program import Input, Need, Program, spawn_loop, spawn_python


class Bayes(Program):
    """Data are simulated at the start of the run, then chains go on until the time is over."""

    name = "bayes"
    title = "Bayesian inference: Markov chain Monte Carlo in numpy"
    kin = "cnn"
    needs = (Need(("numpy",), "numpy", "module"),)
    inputs = (
        Input(
            "hierarchy",
            {"model": "hierarchy", "groups": 2_000, "rows": 40_000, "chains": 1},
            "Hamiltonian Monte Carlo, a hierarchical normal model of 2,000 groups and 40,000 rows, one chain",
        ),
        Input(
            "logistic",
            {"model": "logistic", "columns": 24, "rows": 60_000, "chains": 2},
            "random-walk Metropolis, a logistic regression of 24 coefficients and 60,000 rows, two chains at once",
        ),
    )

    other_inputs = (
        Input(
            "small",
            {"model": "hierarchy", "groups": 200, "rows": 4_000, "chains": 2},
            "Hamiltonian Monte Carlo, 200 groups and 4,000 rows, two chains",
        ),
        Input(
            "broad",
            {"model": "logistic", "columns": 96, "rows": 10_000, "chains": 1},
            "random-walk Metropolis, 96 coefficients and 10,000 rows, one chain",
        ),
    )

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start the chains."""
        return spawn_python(place, "bayes", input.options)


class Cnn(Program):
    """Weights and pictures are random, from the seed: what is recorded is the work, not the answer."""

    name = "cnn"
    title = "AI inference: a small convolutional network in torch, on the CPU"
    kin = "bayes"
    needs = (Need(("torch",), "torch", "module"),)
    inputs = (
        Input(
            "requests",
            {"batch": 1, "side": 64, "channels": 16, "blocks": 3, "rate": 60, "threads": 1},
            "one picture of 64 x 64 at a time, 60 a second, 3 blocks, one thread",
        ),
        Input(
            "batches",
            {"batch": 32, "side": 96, "channels": 32, "blocks": 4, "rate": 0, "threads": 2},
            "batches of 32 pictures of 96 x 96 as fast as it can, 4 blocks, two threads",
        ),
    )

    other_inputs = (
        Input(
            "pictures",
            {"batch": 1, "side": 160, "channels": 16, "blocks": 3, "rate": 15, "threads": 1},
            "one picture of 160 x 160 at a time, 15 a second, one thread",
        ),
        Input(
            "stream",
            {"batch": 8, "side": 64, "channels": 24, "blocks": 3, "rate": 0, "threads": 1},
            "batches of 8 pictures of 64 x 64 as fast as it can, one thread",
        ),
    )

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Load the network and infer."""
        return spawn_python(place, "cnn", input.options, threads=int(input.options["threads"]))


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


class Compilation(Program):
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


ZSTD, XZ = Need(("zstd",), "zstd"), Need(("xz",), "xz-utils")
TEXT_SEED, VOCABULARY, WORDS_A_LINE, LINES = 11, 8_000, 12, 200_000


class Compress(Program):
    """One text of about 15 MB, drawn from a vocabulary whose word frequencies fall as in a language (Zipf)."""

    name = "compress"
    title = "compression: zstd and xz on generated text"
    kin = "compile"
    needs = (ZSTD, XZ)
    inputs = (
        Input("zstd", {"program": "zstd", "level": 6}, "zstd level 6, one thread, the result written and read back"),
        Input("xz", {"program": "xz", "level": 6}, "xz level 6, two threads over blocks of 2 MiB"),
    )

    other_inputs = (
        Input("zstd-fast", {"program": "zstd", "level": 1}, "zstd level 1, one thread"),
        Input("xz-fast", {"program": "xz", "level": 1}, "xz level 1, two threads over blocks of 2 MiB"),
    )

    def fill(self, place: Place) -> None:
        """Write the text."""
        rng = random.Random(TEXT_SEED)
        words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(VOCABULARY)]
        drawn = rng.choices(words, weights=[1 / rank for rank in range(1, VOCABULARY + 1)], k=LINES * WORDS_A_LINE)
        lines = (" ".join(drawn[first : first + WORDS_A_LINE]) for first in range(0, len(drawn), WORDS_A_LINE))
        place.write("text", "\n".join(lines))

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Compress the text again and again."""
        level = input.options["level"]
        if input.options["program"] == "zstd":
            body = f"{ZSTD.path()} -q -f -{level} -T1 text -o text.zst\n{ZSTD.path()} -q -d -c text.zst > /dev/null"
        else:
            body = f"{XZ.path()} -{level} -T2 --block-size=2MiB -k -c text > text.xz"
        return spawn_loop(place, body)
