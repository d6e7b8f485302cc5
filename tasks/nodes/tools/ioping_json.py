"""The JSON of ioping: a list of requests and statistics; the last statistics are of the whole run."""

from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.json_text import at_path, documents, mapping

FIELDS = {  # all times are in ns, bps is bytes a second
    "number_of_requests": ("stat.count", ""),
    "total_duration": ("stat.time", "ns"),
    "transfer_size": ("stat.size", "B"),
    "iops": ("stat.iops", "iops"),
    "transfer_bitrate": ("stat.bps", "B/s"),
    "latency_min": ("stat.min", "ns"),
    "latency_avg": ("stat.avg", "ns"),
    "latency_max": ("stat.max", "ns"),
    "latency_mdev": ("stat.mdev", "ns"),
    "generated_requests": ("load.count", ""),
    "generated_duration": ("load.time", "ns"),
    "generated_size": ("load.size", "B"),
    "generated_iops": ("load.iops", "iops"),
    "generated_bitrate": ("load.bps", "B/s"),
}


def read_json(found: Gathering, text: str) -> None:
    """The values of the first list; broken JSON and further lists are faults."""
    read = documents(text, _is_log)
    for place, reason in read.broken:
        found.fault(place, reason)
    for document in read.found[1:]:
        found.fault(document.place, "another log begins here; only the first of ioping is read")
    for document in read.found[:1]:
        entries = document.content if isinstance(document.content, list) else [document.content]
        statistics = [entry for entry in entries if "stat" in mapping(entry)]
        if not statistics:
            found.fault(document.place, "the log has requests, but no statistics")
        for entry in statistics[-1:]:
            for metric, (path, unit) in FIELDS.items():
                value = at_path(entry, path)
                if value is not None:
                    found.json(metric, value, unit, document.place, path)


def _is_log(content: object) -> bool:
    entries = content if isinstance(content, list) else [content]
    return any("stat" in mapping(entry) or "io" in mapping(entry) for entry in entries)
