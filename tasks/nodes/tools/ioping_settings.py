"""How ioping was called, as far as its log says: size of a request, and whether it read or wrote.

Both stand in each request; a quiet log (-q) says them by its totals, which are rounded, so that a size there counts
where it comes close to a power of two."""

import math
import re
from collections.abc import Sequence

from tasks.nodes.tools.gathering import Gathering
from tasks.nodes.tools.json_text import documents, mapping
from tasks.nodes.tools.lines import Line
from tasks.nodes.tools.numbers import NUMBER, as_number, checked
from tasks.nodes.tools.settings import in_base, spelled

REQUEST = re.compile(rf"^({NUMBER}) ?(bytes|[KMGT]?i?B) (from|to|<<<|>>>) .*request=[0-9]")
WAYS = {"from": "read", "<<<": "read", "to": "write", ">>>": "write"}
MOVED = re.compile(rf"requests completed in [^,]+, {NUMBER} ?[KMGT]?i?B( read| written)?, ")
MOVED_WAYS = {" read": "read", " written": "write", None: "read+write"}
RATIOS = (
    ("transfer_size", "number_of_requests"),
    ("generated_size", "generated_requests"),
    ("transfer_bitrate", "iops"),
)
NEAR = 0.03  # of a power of two


def read_settings(found: Gathering, lines: Sequence[Line], text: str) -> None:
    """Settings request_size (bytes) and operation (read, write or read+write), where the log says them."""
    requests = [match for line in lines if (match := REQUEST.match(line.text))]
    sizes, ways = [], {WAYS[match[3]] for match in requests}
    if requests and not isinstance(size := as_number(requests[0][1]), str):
        sizes.append(in_base(size, requests[0][2]))
    for entry in _entries(text) if not requests else []:
        sizes += [size for size in (checked(entry.get("size")),) if not isinstance(size, str)]
        ways |= {str(entry["operation"])} if "operation" in entry else set()
    if not ways:
        ways = {MOVED_WAYS[match[1]] for line in lines if (match := MOVED.search(line.text))}
    if size_b := sizes[0] if sizes else _size_by_totals(found):
        found.setting("request_size", spelled(size_b))
    found.setting("operation", "+".join(sorted(ways)))


def _entries(text: str) -> list[dict[str, object]]:
    """The requests of a log in JSON."""
    read = documents(text, lambda content: isinstance(content, list)).found[:1]
    entries = [mapping(mapping(one).get("io")) for document in read for one in _listed(document.content)]
    return [dict(one) for one in entries if one]


def _listed(content: object) -> list[object]:
    return content if isinstance(content, list) else []


def _size_by_totals(found: Gathering) -> float:
    """The power of two that bytes over requests come close to; 0 for none."""
    for size, count in RATIOS:
        total, number = found.base(size), found.value(count)
        if total and number:
            nearest = 2.0 ** round(math.log2(total / number))
            return nearest if abs(total / number / nearest - 1) <= NEAR else 0.0
    return 0.0
