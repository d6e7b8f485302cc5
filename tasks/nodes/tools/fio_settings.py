"""How fio was called, as far as its log says: direction, block size, engine, depth, and in JSON more of the options.

Text says it of each job before the results, as fio understood it; JSON lists the options that were given, so that what
is not among them is fio's default. Names of files and places are no part of the work and are left out."""

import re
from collections.abc import Mapping, Sequence

from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.json_text import mapping
from tasks.nodes.tools.lines import Line

DESCRIBED = re.compile(r"^\S.*?: \(g=\d+\): rw=([a-z]+), (?:bs|bsrange)=(.*?), ioengine=([^,\s]+), iodepth=(\d+)")
JSON_NAMES = {  # ours: theirs, of which the first counts
    "rw": ("rw", "readwrite"),
    "bs": ("bs", "blocksize", "bsrange", "blocksize_range", "bssplit"),
    "ioengine": ("ioengine",),
    "iodepth": ("iodepth",),
}
DEFAULTS = {"rw": "read", "bs": "4k", "ioengine": "psync", "iodepth": "1"}
FURTHER = (
    "direct", "buffered", "sync", "fsync", "fdatasync", "end_fsync", "rwmixread", "rwmixwrite", "rate", "rate_iops",
    "thinktime", "size", "filesize", "io_size", "number_ios", "runtime", "loops",
)  # fmt: skip
UNSET = "0"  # of FURTHER: what fio takes for not given
SIZE = re.compile(r"([0-9]{1,15})([kmgt]?)(?:i?b)?", re.IGNORECASE)
POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
BINARY = 1_024


def read_text_settings(found: Gathering, lines: Sequence[Line]) -> None:
    """Of all jobs that the text describes; where they differ, all of what they have, joined by +."""
    said = [match.groups() for line in lines if not line.is_cut and (match := DESCRIBED.match(line.text))]
    told = [{"rw": rw, "bs": _text_sizes(bs), "ioengine": engine, "iodepth": depth} for rw, bs, engine, depth in said]
    for name in JSON_NAMES if told else ():
        found.setting(name, "+".join(dict.fromkeys(one[name] for one in told)))


def read_json_settings(found: Gathering, content: object, jobs: Sequence[object]) -> None:
    """Of all jobs, with the options that they share; where they differ, all of what they have, joined by + as of text.

    Nothing where none are listed (2.x)."""
    shared = mapping(mapping(content).get("global options"))
    listed = [{**shared, **mapping(mapping(job).get("job options"))} for job in jobs]
    told = [_json_told({name: str(value) for name, value in given.items()}) for given in listed if given]
    for name in (*JSON_NAMES, *FURTHER) if told else ():
        text = "+".join(dict.fromkeys(one[name] for one in told))
        if name in JSON_NAMES or text != UNSET:
            found.setting(name, text)


def _json_told(options: Mapping[str, str]) -> dict[str, str]:
    """Each setting of one job by name; of FURTHER, UNSET where it was not given."""
    told = {}
    for ours, names in JSON_NAMES.items():
        text = next((options[name] for name in names if options.get(name)), DEFAULTS[ours])
        told[ours] = _json_sizes(text) if ours == "bs" else "rw" if text == "readwrite" else text
    return told | {name: _bytes(options.get(name) or UNSET) for name in FURTHER}


def _text_sizes(text: str) -> str:
    """`(R) 4096B-4096B, (W) 8192B-8192B, …` or `4K-4K/8K-8K/4K-4K`: of reads and writes, one if they are alike."""
    ranges = re.findall(r"([0-9]+[kKMGT]?i?B?)-([0-9]+[kKMGT]?i?B?)", text)
    return _alike([_range(least, most) for least, most in ranges[:2]]) or text


def _json_sizes(text: str) -> str:
    """`4k`, `4k,8k` (reads, writes) or `1k-4k`; what is left out is fio's default."""
    parts = [_json_range(part.strip() or DEFAULTS["bs"]) for part in text.split(",")]
    return _alike(parts[:2])


def _json_range(text: str) -> str:
    least, dash, most = text.partition("-")
    return _range(least, most) if dash else _bytes(text)


def _range(least: str, most: str) -> str:
    return _bytes(least) if _bytes(least) == _bytes(most) else f"{_bytes(least)}-{_bytes(most)}"


def _alike(sizes: Sequence[str]) -> str:
    return ",".join(dict.fromkeys(sizes))


def _bytes(text: str) -> str:
    """A size in bytes, powers of 1,024; anything else as it is."""
    match = SIZE.fullmatch(text.strip())
    return str(int(match[1]) * BINARY ** POWERS[match[2].lower()]) if match else text
