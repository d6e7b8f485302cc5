"""The JSON of iperf3 -J, with --bidir, with -R, or one way.

Seconds, bytes and bits a second stand under end.sum_sent and end.sum_received, those of the way back of --bidir under
…_bidir_reverse. Round trips and windows are those of the client where it sends: what stands there for the other
direction is of a socket that sends nothing, and is passed over."""

from collections.abc import Callable, Mapping
from statistics import fmean

from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.iperf3_facts import MODES
from tasks.nodes.tools.iperf3_settings import read_json_settings
from tasks.nodes.tools.json_text import Document, at_path, documents, mapping
from tasks.nodes.tools.numbers import checked

SUMS = {"seconds": ("time", "s"), "bytes": ("transfer_size", "B"), "bits_per_second": ("transfer_bitrate", "bits/sec")}
REVERSE = "_bidir_reverse"
CONNECTION: dict[str, tuple[str, Callable[[list[float]], float], str]] = {
    "rtt_min": ("min_rtt", min, "us"),
    "rtt_mean": ("mean_rtt", fmean, "us"),
    "rtt_max": ("max_rtt", max, "us"),
    "max_snd_cwnd": ("max_snd_cwnd", max, "B"),
}


def read_json(found: Gathering, text: str) -> None:
    """The values of the first document; broken JSON and further documents are faults."""
    read = documents(text, lambda content: bool({"start", "end", "error"} & mapping(content).keys()))
    for place, reason in read.broken:
        found.fault(place, reason)
    for document in read.found[1:]:
        found.fault(document.place, "another log begins here; only the first of iperf3 is read")
    for document in read.found[:1]:
        _read(found, document)


def _read(found: Gathering, document: Document) -> None:
    content, place = document.content, document.place
    found.version = str(at_path(content, "start.version") or "").removeprefix("iperf ").strip()
    error = mapping(content).get("error")
    if error is not None:
        told = f"iperf3 reported an error: {str(error)[:200]}"
        found.fault(place, told, f"error: {error}", is_failure=True)
    end = mapping(mapping(content).get("end"))
    is_server = "accepted_connection" in mapping(mapping(content).get("start"))
    if is_server or not end:
        if error is None:
            told = "the log of a server; the client's is read" if is_server else "no results: end is empty"
            found.fault(place, told)
        return
    is_reverse = at_path(content, "start.test_start.reverse") == 1
    first, second = ("rx_c", "tx_c") if is_reverse else ("tx_c", "rx_c")
    has_second = f"sum_sent{REVERSE}" in end
    read_json_settings(found, content, "both" if has_second else "rx" if is_reverse else "tx")
    if "sum_sent" not in end:
        found.fault(place, "no sum_sent under end; expected a TCP test")
    _read_sums(found, end, first, "", place)
    if has_second:
        _read_sums(found, end, second, REVERSE, place)
    for prefix in (first, second)[: 1 + has_second]:
        _read_cpu(found, end, prefix, place)
        if prefix == "tx_c":
            _read_connection(found, end, place)


def _read_sums(found: Gathering, end: Mapping[str, object], prefix: str, suffix: str, place: int) -> None:
    for side, key in (("sender", f"sum_sent{suffix}"), ("receiver", f"sum_received{suffix}")):
        block = mapping(end.get(key))
        if _is_silent(block):
            told = f"the {side} told nothing: {block.get('bytes')} bytes in {block.get('seconds')} s"
            found.fault(place, told, f"end.{key}: {dict(block)}")
            continue
        for field, (name, unit) in SUMS.items():
            value = at_path(end, f"{key}.{field}")
            if value is not None:
                found.json(f"{prefix}_{name}_{side}", value, unit, place, f"end.{key}.{field}")
    retransmits = at_path(end, f"sum_sent{suffix}.retransmits")
    if retransmits is not None and not _is_silent(mapping(end.get(f"sum_sent{suffix}"))):
        found.json(f"{prefix}_transfer_retr_sender", retransmits, "", place, f"end.sum_sent{suffix}.retransmits")


def _is_silent(block: Mapping[str, object]) -> bool:
    """Whether the sum is of a side that was stopped before it could tell: 0 stands for nothing there."""
    return 0 in (block.get("bytes"), block.get("seconds"))


def _read_cpu(found: Gathering, end: Mapping[str, object], prefix: str, place: int) -> None:
    hosts = {"sender": "host", "receiver": "remote"} if prefix == "tx_c" else {"sender": "remote", "receiver": "host"}
    for side, host in hosts.items():
        for mode in MODES:
            path = f"cpu_utilization_percent.{host}{mode or '_total'}"
            value = at_path(end, path)
            if value == 0 and f"{prefix}_transfer_size_{side}" not in found:
                continue  # nobody told it
            if value is not None:
                found.json(f"{prefix}_cpu_util_{side}{mode}", value, "%", place, f"end.{path}")


def _read_connection(found: Gathering, end: Mapping[str, object], place: int) -> None:
    """Over the streams of the direction: extremes of extremes, mean of means."""
    streams = end.get("streams")
    senders = [mapping(mapping(one).get("sender")) for one in streams] if isinstance(streams, list) else []
    mine = [one for one in senders if one.get("sender", True) is True]  # before 3.7 all of them, without saying so
    for name, (key, joined, unit) in CONNECTION.items():
        values = [one[key] for one in mine if one.get(key)]
        numbers = [number for value in values if not isinstance(number := checked(value), str)]
        if values:
            told = (
                joined(numbers)
                if len(numbers) == len(values)
                else next(v for v in values if isinstance(checked(v), str))
            )
            found.json(f"tx_c_{name}", told, unit, place, f"end.streams.sender.{key}")
