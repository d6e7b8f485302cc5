"""Compression of generated text with zstd and xz."""

import random
import subprocess

from tasks.workloads.record.programs.need import Need
from tasks.workloads.record.programs.place import Place
from tasks.workloads.record.programs.program import Input
from tasks.workloads.record.programs.service import Service
from tasks.workloads.record.programs.shell_load import spawn_loop

ZSTD, XZ = Need(("zstd",), "zstd"), Need(("xz",), "xz-utils")
TEXT_SEED, VOCABULARY, WORDS_A_LINE, LINES = 11, 8_000, 12, 200_000


class Compress(Service):
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
