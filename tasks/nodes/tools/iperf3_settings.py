"""How iperf3 was called, as far as its log says: direction, streams, and what differs from iperf3's defaults.

JSON says all of it, text with -V most, plain text only direction and streams."""

import re
from collections.abc import Sequence

from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.json_text import at_path, mapping
from tasks.nodes.tools.lines import Line

TEST = re.compile(
    r"^Starting Test: protocol: TCP, (?P<streams>\d+) streams, (?P<block_size>\d+) byte blocks, "
    r"omitting (?P<omit>\d+) seconds, (?:(?P<duration>\d+) second test|(?P<bytes>\d+) bytes to send)"
)
DEFAULTS = {"block_size": "131072", "omit": "0", "duration": "10", "bytes": "0", "blocks": "0", "bitrate": "0"}
FIELDS = {"block_size": "blksize", "omit": "omit", "duration": "duration", "bytes": "bytes", "blocks": "blocks"}
BITRATES = ("start.target_bitrate", "start.test_start.target_bitrate")


def read_json_settings(found: Gathering, content: object, direction: str) -> None:
    """Of a whole document. direction: tx, rx or both."""
    start = mapping(at_path(content, "start.test_start"))
    told = {ours: start[theirs] for ours, theirs in FIELDS.items() if theirs in start}
    if told.get("bytes") or told.get("blocks"):
        told.pop("duration", None)  # not what ended it
    rate = next((value for path in BITRATES if (value := at_path(content, path))), None)
    if rate is not None:
        told["bitrate"] = rate
    _put(found, {name: str(value) for name, value in told.items()})
    found.setting("direction", direction)
    found.setting("streams", str(start.get("num_streams", "")))


def read_text_settings(found: Gathering, lines: Sequence[Line], direction: str, n_streams: int) -> None:
    """Of a log in text. n_streams: of a direction."""
    told = next((match.groupdict() for line in lines if (match := TEST.match(line.text))), {})
    _put(found, {name: value for name, value in told.items() if value is not None and name != "streams"})
    found.setting("direction", direction)
    found.setting("streams", told.get("streams") or (str(n_streams) if n_streams else ""))


def _put(found: Gathering, told: dict[str, str]) -> None:
    for name, text in told.items():
        if text != DEFAULTS[name]:
            found.setting(name, text)
