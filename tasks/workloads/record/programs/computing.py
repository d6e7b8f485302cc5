"""Programs that compute: Markov chains, a convolutional network, compilers and compressors."""

import random
import subprocess

from tasks.workloads.record.programs.place import Place
from tasks.workloads.record.programs.program import Input, Need, Program, inputs_of, spawn_loop, spawn_python


class Bayes(Program):
    """Data are simulated at the start of the run, then chains go on until the time is over."""

    name = "bayes"
    title = "Bayesian inference: Markov chain Monte Carlo in numpy"
    kin = "cnn"
    needs = (Need(("numpy",), "numpy", "module"),)
    inputs = inputs_of(
        "model groups rows chains columns",
        ("hierarchy", "hierarchy", 2_000, 40_000, 1, 0, "Hamiltonian, 2,000 groups, 40,000 rows, one chain"),
        ("logistic", "logistic", 0, 60_000, 2, 24, "Metropolis, 24 coefficients, 60,000 rows, two chains"),
    )

    other_inputs = inputs_of(
        "model groups rows chains columns",
        ("small", "hierarchy", 200, 4_000, 2, 0, "Hamiltonian, 200 groups, 4,000 rows, two chains"),
        ("broad", "logistic", 0, 10_000, 1, 96, "Metropolis, 96 coefficients, 10,000 rows, one chain"),
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
    inputs = inputs_of(
        "batch side channels blocks rate threads",
        ("requests", 1, 64, 16, 3, 60, 1, "one picture of 64 x 64 at a time, 60 a second, one thread"),
        ("batches", 32, 96, 32, 4, 0, 2, "32 pictures of 96 x 96 as fast as it can, two threads"),
    )

    other_inputs = inputs_of(
        "batch side channels blocks rate threads",
        ("pictures", 1, 160, 16, 3, 15, 1, "one picture of 160 x 160 at a time, 15 a second, one thread"),
        ("stream", 8, 64, 24, 3, 0, 1, "8 pictures of 64 x 64 as fast as it can, one thread"),
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
    inputs = inputs_of(
        "flags jobs sources",
        ("optimised", "-O2", 2, "large", "two gcc at a time with -O2, 40 files of 60 functions"),
        ("debug", "-O0 -g", 1, "small", "one gcc at a time with -O0 -g, 40 files of 4 functions: many short processes"),
    )

    other_inputs = inputs_of(
        "flags jobs sources",
        ("one", "-O1", 1, "large", "one gcc at a time with -O1, the large files"),
        ("short", "-O2", 2, "small", "two gcc at a time with -O2, the small files"),
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
    inputs = inputs_of(
        "program level",
        ("zstd", "zstd", 6, "zstd level 6, one thread, the result written and read back"),
        ("xz", "xz", 6, "xz level 6, two threads over blocks of 2 MiB"),
    )

    other_inputs = inputs_of(
        "program level",
        ("zstd-fast", "zstd", 1, "zstd level 1, one thread"),
        ("xz-fast", "xz", 1, "xz level 1, two threads over blocks of 2 MiB"),
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
