"""iperf3: JSON (-J), or text of 3.0 to 3.x; of the client; TCP one way, back (-R), both ways (--bidir); UDP in JSON.

Metrics by direction: tx_c (the client sends) and rx_c (the client receives), as [TX-C] and [RX-C] in the text.

JSON: seconds, bytes and bits a second stand under end.sum_sent and end.sum_received, those of the way back of --bidir
under …_bidir_reverse. Round trips and windows are those of the client where it sends: what stands there for the other
direction is of a socket that sends nothing, and is passed over.

Text: the lines of the summary that end in sender or receiver, and those of CPU use. iperf3 prints KBytes, MBytes and
GBytes as powers of 1,024: they become KiB, MiB, GiB. With parallel streams the lines of [SUM] count. Lines of single
seconds are passed over.

Start: in JSON, and in text with -V.

Settings: JSON says all that differs from iperf3's defaults, text with -V most, other text direction and streams."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from statistics import fmean

from tasks.nodes.tools.parsing import (
    CUT,
    ERROR_SHOWN,
    NUMBER,
    Document,
    Log,
    LogLine,
    MetricFacts,
    Parser,
    as_number,
    at_path,
    checked,
    facts_of,
    looks_like_json,
    mapping,
    unix_time,
)

TOOL = "iperf3"
ENDS = {"sender": "sent", "receiver": "received"}
MODES = {"": "_total", "_user": "_user", "_system": "_system"}  # of processor use: ours, and iperf3's
# of one way, with the paths of the JSON. {{back}}: the end of the names of the way back of --bidir; {{sender}},
# {{receiver}}: which of host and remote the ends are
SUMS = """
    {way}_time_{end} | = s | sum_{sums}{{back}}/seconds=s | time of the {end}
    {way}_transfer_size_{end} | + B per {way}_time_{end} | sum_{sums}{{back}}/bytes=B | bytes, counted by the {end}
    {way}_transfer_bitrate_{end} | +! B/s | sum_{sums}{{back}}/bits_per_second=bits/sec | speed, counted by the {end}
    """
SENT_AGAIN = """
    {way}_transfer_retr_sender | - 1 per {way}_time_sender | sum_sent{{back}}/retransmits= | segments sent again (Linux)
    """
USE = "{way}_cpu_util_{end}{mode} | = % | cpu_utilization_percent/{{{end}}}{theirs}=% | processor use of the {end}\n"


def _direction(way: str) -> dict[str, MetricFacts]:
    sums = [SUMS.format(way=way, end=end, sums=sums) for end, sums in ENDS.items()]
    uses = [USE.format(way=way, end=end, mode=mode, theirs=theirs) for end in ENDS for mode, theirs in MODES.items()]
    return facts_of("network", "".join([*sums, SENT_AGAIN.format(way=way), *uses]))


OF_DIRECTION = {way: _direction(way) for way in ("tx_c", "rx_c")}
JOINED: dict[str, Callable[[list[float]], float]] = {"min": min, "mean": fmean, "max": max, "cwnd": max}  # of streams
# the kernel of the sending side knows these, so they are missing where that is the server; JSON only
OF_CONNECTION = facts_of(
    "network",
    """
    tx_c_rtt_min | - s ~1e-6 | min_rtt=us | shortest round trip, as the client's kernel sees it
    tx_c_rtt_mean | - s ~1e-6 | mean_rtt=us | mean round trip, as the client's kernel sees it
    tx_c_rtt_max | - s ~1e-6 | max_rtt=us | longest round trip, as the client's kernel sees it
    tx_c_max_snd_cwnd | = B | max_snd_cwnd=B | largest congestion window of the client
    """,
)
METRICS = {**OF_DIRECTION["tx_c"], **OF_DIRECTION["rx_c"], **OF_CONNECTION}
# as the receiver counts them; whichever way they went
OF_UDP = """
    udp_time | = s | sum/seconds=s | time of the test
    udp_transfer_bitrate | +! B/s | sum_received/bits_per_second=bits/sec; sum/bits_per_second=bits/sec | speed
    udp_packets | + 1 per udp_time | sum/packets= | packets sent
    udp_lost_share | -! % | sum/lost_percent=% | packets that did not arrive
    udp_jitter | -! s | sum/jitter_ms=ms | mean change of the time that a packet takes
    """
UDP_METRICS = facts_of("network", OF_UDP)

STARTS = (re.compile(r"^iperf (3\.[0-9A-Za-z.+\-]+)"), re.compile(r"^Connecting to host"))
ERRORS = re.compile(r"^\s*iperf3?: (error|interrupt|parameter error|unable|warning)")
SIGNS = re.compile(
    r'^iperf 3\.|^Connecting to host .*, port \d+|^\s*iperf3?: |"connecting_to":|"cpu_utilization_percent":|"sum_sent":'
    r'|^\s*"error":\s*"(unable|error|control|the server|unexpected)|^\[ *(\d+|SUM)\].* sec .*Bytes .*/sec',
    re.MULTILINE,
)
REVERSE = "_bidir_reverse"
UDP = "a UDP test, which is read in JSON alone; run with -J"
OF_SERVER = "the log of a server; the client's is read"
SUMMARY = re.compile(
    rf"\[ *(?P<stream>SUM|\d+)\](?:\[(?P<way>TX-C|RX-C)\])? +{NUMBER}-(?P<time>{NUMBER}) +(?P<time_unit>sec) +"
    rf"(?P<transfer_size>{NUMBER}) (?P<transfer_size_unit>[KMGT]?Bytes) +(?P<transfer_bitrate>{NUMBER}) "
    rf"(?P<transfer_bitrate_unit>[KMGT]?(?:bits|Bytes)/sec)(?: +(?P<transfer_retr>{NUMBER}))? +"
    r"(?P<end>sender|receiver)\s*$"
)
CPU = re.compile(
    rf"^CPU Utilization: local/(sender|receiver) ({NUMBER})% \(({NUMBER})%u/({NUMBER})%s\), "
    rf"remote/(?:sender|receiver) ({NUMBER})% \(({NUMBER})%u/({NUMBER})%s\)\s*$"
)
CONNECTED = re.compile(r"^\[ *\d+\] local .* connected to ")
BACK = re.compile(r"^Reverse mode, remote host")
TIME = re.compile(r"^Time: (.* GMT)$")
SERVER = re.compile(r"^Server listening on")
DONE = re.compile(r"^iperf Done\.")
ENDS_LIKE_A_SUMMARY = re.compile(r"^(\[.*\b(sender|receiver)\s*|CPU Utilization: .*)$")
TEST = re.compile(
    r"^Starting Test: protocol: TCP, (?P<streams>\d+) streams, (?P<block_size>\d+) byte blocks, "
    r"omitting (?P<omit>\d+) seconds, (?:(?P<duration>\d+) second test|(?P<bytes>\d+) bytes to send)"
)
DEFAULTS = {"block_size": "131072", "omit": "0", "duration": "10", "bytes": "0", "blocks": "0", "bitrate": "0"}
FIELDS = {"block_size": "blksize", "omit": "omit", "duration": "duration", "bytes": "bytes", "blocks": "blocks"}
BITRATES = ("start/target_bitrate", "start/test_start/target_bitrate")


def _read(log: Log) -> None:
    log.metrics = METRICS
    if looks_like_json(log.text):
        log.fault_lines(log.lines, ERRORS)
        if document := log.document(lambda content: bool({"start", "end", "error"} & mapping(content).keys())):
            _read_json(log, document)
        return
    first = log.part(STARTS, ERRORS)
    if SIGNS.search("\n".join(line.text for line in first if not ERRORS.match(line.text))):
        _read_text(log, first)


def _read_json(log: Log, document: Document) -> None:
    content, place = document.content, document.place
    log.version = str(at_path(content, "start/version") or "").removeprefix("iperf ").strip()
    stamp = mapping(at_path(content, "start/timestamp"))
    log.started_at = unix_time(stamp.get("timemillisecs"), 1_000) or unix_time(stamp.get("timesecs"))
    error = mapping(content).get("error")
    if error is not None:
        reason = f"{TOOL} reported an error: {str(error)[:ERROR_SHOWN]}"
        log.fault(place, reason, f"error: {error}", is_failure=True)
    end = mapping(mapping(content).get("end"))
    is_server = "accepted_connection" in mapping(mapping(content).get("start"))
    if is_server or not end:
        if error is None:
            log.fault(place, OF_SERVER if is_server else "no results: end is empty")
        return
    ways = ["rx_c", "tx_c"] if at_path(content, "start/test_start/reverse") == 1 else ["tx_c", "rx_c"]
    if f"sum_sent{REVERSE}" not in end:
        ways.pop()
    _read_json_settings(log, content, "both" if len(ways) > 1 else ways[0].removesuffix("_c"))
    if at_path(content, "start/test_start/protocol") == "UDP":
        log.metrics = UDP_METRICS
        log.setting("protocol", "UDP")
        log.take_paths(Document(place, end, "end/"), UDP_METRICS)
        return
    if "sum_sent" not in end:
        log.fault(place, "no sum_sent under end; expected a TCP test")
    for way, back in zip(ways, ("", REVERSE), strict=False):
        host = {"sender": "host", "receiver": "remote"} if way == "tx_c" else {"sender": "remote", "receiver": "host"}
        log.take_paths(
            Document(place, _without_silent(log, end, back, host, place), "end/"),
            OF_DIRECTION[way],
            names={"back": back, **host},
        )
    if "tx_c" in ways:
        _read_connection(log, end, place)


def _without_silent(
    log: Log, end: Mapping[str, object], back: str, host: Mapping[str, str], place: int
) -> dict[str, object]:
    """The end without the side that was stopped before it could tell: 0 stands for nothing there, and is a fault."""
    kept, cpu = dict(end), dict(mapping(end.get("cpu_utilization_percent")))
    for side, sums in ENDS.items():
        key = f"sum_{sums}{back}"
        block = mapping(end.get(key))
        is_silent = 0 in (block.get("bytes"), block.get("seconds"))
        if is_silent:
            reason = f"the {side} told nothing: {block.get('bytes')} bytes in {block.get('seconds')} s"
            log.fault(place, reason, f"end.{key}: {dict(block)}")
            del kept[key]
        if is_silent or "bytes" not in block:
            cpu = {name: use for name, use in cpu.items() if use != 0 or not name.startswith(host[side])}
    return kept | {"cpu_utilization_percent": cpu}


def _read_connection(log: Log, end: Mapping[str, object], place: int) -> None:
    """Over the streams that the client sends: extremes of extremes, mean of means."""
    streams = end.get("streams")
    senders = [mapping(mapping(sender).get("sender")) for sender in streams] if isinstance(streams, list) else []
    mine = [
        sender for sender in senders if sender.get("sender", True) is True
    ]  # before 3.7 all of them, without saying so
    for metric, facts in OF_CONNECTION.items():
        ((key, unit),) = facts.at.items()
        values = [sender[key] for sender in mine if sender.get(key)]
        numbers = [number for value in values if not isinstance(number := checked(value), str)]
        if values:
            bad = next((value for value in values if isinstance(checked(value), str)), None)
            value = JOINED[metric.rpartition("_")[2]](numbers) if bad is None else bad
            log.take_json(metric, value, unit, place, f"end/streams/sender/{key}")


def _read_json_settings(log: Log, content: object, direction: str) -> None:
    start = mapping(at_path(content, "start/test_start"))
    settings = {ours: start[theirs] for ours, theirs in FIELDS.items() if theirs in start}
    if settings.get("bytes") or settings.get("blocks"):
        settings.pop("duration", None)  # not what ended it
    rate = next((value for path in BITRATES if (value := at_path(content, path))), None)
    if rate is not None:
        settings["bitrate"] = rate
    _put_settings(log, {name: str(value) for name, value in settings.items()})
    log.setting("direction", direction)
    log.setting("streams", str(start.get("num_streams", "")))


def _put_settings(log: Log, settings: Mapping[str, str]) -> None:
    for name, text in settings.items():
        if text != DEFAULTS[name]:
            log.setting(name, text)


def _read_text(log: Log, lines: Sequence[LogLine]) -> None:
    if any(SERVER.match(line.text) for line in lines):
        log.fault(lines[0].place, OF_SERVER, lines[0].text)
        return
    is_reverse = any(BACK.match(line.text) for line in lines)
    is_both = any("][TX-C]" in line.text for line in lines)
    n_streams = sum(bool(CONNECTED.match(line.text)) for line in lines)
    is_parallel = n_streams > 1 + is_both or any(line.text.startswith("[SUM]") for line in lines)
    test = next((match.groupdict() for line in lines if (match := TEST.match(line.text))), {})
    of_direction = n_streams // (1 + is_both)
    log.setting("streams", test.pop("streams", "") or (str(of_direction) if of_direction else ""))
    log.setting("direction", "both" if is_both else "rx" if is_reverse else "tx")
    _put_settings(log, {name: value for name, value in test.items() if value is not None})
    for head in filter(None, (TIME.match(line.text.rstrip()) for line in lines)):
        with suppress(ValueError):
            log.started_at = log.started_at or unix_time(parsedate_to_datetime(head[1]).timestamp())
    for line in lines:
        match = SUMMARY.search(line.text)
        if match and is_parallel == (match["stream"] == "SUM"):
            way = match["way"] or ("RX-C" if is_reverse else "TX-C")
            _take_summary(log, way.lower().replace("-", "_"), match, line)
    for line in lines:
        if cpu := CPU.match(line.text):
            _take_cpu(log, cpu, line)
        elif ENDS_LIKE_A_SUMMARY.match(line.text) and not SUMMARY.search(line.text):
            reason = UDP if "%)" in line.text else "a summary without its time, size and speed"
            log.fault(line.place, CUT if line.is_cut else reason, line.text)
    if not any(DONE.match(line.text) for line in lines):
        log.fault(lines[-1].place, "the log is cut off: no 'iperf Done.' at its end", lines[-1].text)


def _take_summary(log: Log, way: str, match: re.Match[str], line: LogLine) -> None:
    end, time, size = match["end"], match["time"], match["transfer_size"]
    if 0.0 in (as_number(time), as_number(size)):  # of a side that was stopped before it could tell
        reason = f"the {end} told nothing: {size} {match['transfer_size_unit']} in {time} s"
        log.fault(line.place, reason, line.text)
        return
    log.take_groups(match, line, lambda name: f"{way}_{name}_{end}")


def _take_cpu(log: Log, match: re.Match[str], line: LogLine) -> None:
    """Both ends' use; with --bidir there is one such line a direction."""
    local = match[1]
    way, remote = ("tx_c", "receiver") if local == "sender" else ("rx_c", "sender")
    for end, numbers in ((local, match.groups()[1:4]), (remote, match.groups()[4:7])):
        for mode, number in zip(MODES, numbers, strict=True):
            if as_number(number) == 0.0 and f"{way}_transfer_size_{end}" not in log:
                continue  # nobody told it
            log.take(f"{way}_cpu_util_{end}{mode}", number, "%", line)


PARSER = Parser("network-iperf3", TOOL, "network", METRICS | UDP_METRICS, _read, SIGNS)
