"""The text of iperf3 3.0 to 3.x: the lines of the summary that end in sender or receiver, and those of CPU use.

iperf3 prints KBytes, MBytes and GBytes as powers of 1,024: they become KiB, MiB, GiB. With parallel streams the lines
of [SUM] count. Lines of single seconds are passed over."""

import re
from collections.abc import Sequence

from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.iperf3_settings import read_text_settings
from tasks.nodes.tools.lines import Line
from tasks.nodes.tools.numbers import NUMBER, as_number
from tasks.nodes.tools.parser import CUT

SUMMARY = re.compile(
    rf"\[ *(SUM|\d+)\](?:\[(TX-C|RX-C)\])? +{NUMBER}-({NUMBER}) +sec +({NUMBER}) ([KMGT]?Bytes) +({NUMBER}) "
    rf"([KMGT]?(?:bits|Bytes))/sec(?: +({NUMBER}))? +(sender|receiver)\s*$"
)
CPU = re.compile(
    rf"^CPU Utilization: local/(sender|receiver) ({NUMBER})% \(({NUMBER})%u/({NUMBER})%s\), "
    rf"remote/(?:sender|receiver) ({NUMBER})% \(({NUMBER})%u/({NUMBER})%s\)\s*$"
)
CONNECTED = re.compile(r"^\[ *\d+\] local .* connected to ")
REVERSE = re.compile(r"^Reverse mode, remote host")
SERVER = re.compile(r"^Server listening on")
DONE = re.compile(r"^iperf Done\.")
ENDS_LIKE_A_SUMMARY = re.compile(r"^(\[.*\b(sender|receiver)\s*|CPU Utilization: .*)$")
MODES = ("", "_user", "_system")


def read_text(found: Gathering, lines: Sequence[Line]) -> None:
    """The values of one log."""
    if any(SERVER.match(line.text) for line in lines):
        found.fault(lines[0].place, "the log of a server; the client's is read", lines[0].text)
        return
    is_reverse = any(REVERSE.match(line.text) for line in lines)
    summaries = [(line, match) for line in lines if (match := SUMMARY.search(line.text))]
    is_parallel = _is_parallel(lines)
    _read_settings(found, lines, is_reverse=is_reverse)
    for line, match in summaries:
        if is_parallel == (match[1] == "SUM"):
            prefix = match[2].lower().replace("-", "_") if match[2] else ("rx_c" if is_reverse else "tx_c")
            _take(found, prefix, match, line)
    for line in lines:
        if cpu := CPU.match(line.text):
            _take_cpu(found, cpu, line)
        elif ENDS_LIKE_A_SUMMARY.match(line.text) and not SUMMARY.search(line.text):
            found.fault(line.place, CUT if line.is_cut else "a summary without its time, size and speed", line.text)
    if not any(DONE.match(line.text) for line in lines):
        found.fault(lines[-1].place, "the log is cut off: no 'iperf Done.' at its end", lines[-1].text)


def _is_parallel(lines: Sequence[Line]) -> bool:
    """Whether a direction has several streams, so that only their sum counts."""
    n_streams = sum(bool(CONNECTED.match(line.text)) for line in lines)
    has_roles = any("][TX-C]" in line.text for line in lines)
    return n_streams > 1 + has_roles or any(line.text.startswith("[SUM]") for line in lines)


def _read_settings(found: Gathering, lines: Sequence[Line], *, is_reverse: bool) -> None:
    n_streams = sum(bool(CONNECTED.match(line.text)) for line in lines)
    has_roles = any("][TX-C]" in line.text for line in lines)
    direction = "both" if has_roles else "rx" if is_reverse else "tx"
    read_text_settings(found, lines, direction, n_streams // (1 + has_roles))


def _take(found: Gathering, prefix: str, match: re.Match[str], line: Line) -> None:
    _, _, time, size, size_unit, speed, speed_unit, retransmits, side = match.groups()
    if 0.0 in (as_number(time), as_number(size)):  # of a side that was stopped before it could tell
        found.fault(line.place, f"the {side} told nothing: {size} {size_unit} in {time} s", line.text)
        return
    found.text(f"{prefix}_time_{side}", time, "sec", line)
    found.text(f"{prefix}_transfer_size_{side}", size, _binary(size_unit), line)
    unit = f"{speed_unit}/sec" if speed_unit.endswith("bits") else f"{_binary(speed_unit)}/s"
    found.text(f"{prefix}_transfer_bitrate_{side}", speed, unit, line)
    if retransmits is not None and side == "sender":
        found.text(f"{prefix}_transfer_retr_sender", retransmits, "", line)


def _take_cpu(found: Gathering, match: re.Match[str], line: Line) -> None:
    """Both ends' use; with --bidir there is one such line a direction."""
    local = match[1]
    prefix, remote = ("tx_c", "receiver") if local == "sender" else ("rx_c", "sender")
    for side, numbers in ((local, match.groups()[1:4]), (remote, match.groups()[4:7])):
        for mode, number in zip(MODES, numbers, strict=True):
            if as_number(number) == 0.0 and f"{prefix}_transfer_size_{side}" not in found:
                continue  # nobody told it
            found.text(f"{prefix}_cpu_util_{side}{mode}", number, "%", line)


def _binary(unit: str) -> str:
    return "B" if unit == "Bytes" else f"{unit[0]}iB"
