"""JSON documents in a log, whatever stands before, between and behind them."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

# where a document may begin: a brace or [{ that opens its line
OPENING = re.compile(r'^[ \t\ufeff]*(?P<start>\{[ \t]*(?=["}]|\r?$)|\[[ \t\r\n]*\{)', re.MULTILINE)


@dataclass(frozen=True)
class Document:
    """A decoded document. place: the line where it begins; end: where the text goes on behind it."""

    place: int
    end: int
    content: object


@dataclass(frozen=True)
class Documents:
    """Those that have the shape asked for. broken: line and reason of what begins like one and is none."""

    found: tuple[Document, ...]
    broken: tuple[tuple[int, str], ...]


def documents(text: str, has_shape: Callable[[object], bool]) -> Documents:
    """All JSON documents of a shape. What follows a broken one is looked through as well."""
    decoder, at = json.JSONDecoder(), 0
    found: list[Document] = []
    broken: list[tuple[int, str]] = []
    while opening := OPENING.search(text, at):
        start = opening.start("start")
        try:
            content, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            told = f"{error.msg} in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else str(error)
            broken.append((_line(text, start), f"malformed JSON: {told}"))
            at = max(opening.end("start"), getattr(error, "pos", 0))  # up to there all of it was one document
            continue
        at = end
        if has_shape(content):
            found.append(Document(_line(text, start), end, content))
    return Documents(tuple(found), tuple(broken))


def looks_like_json(text: str) -> bool:
    """Whether a document begins somewhere."""
    return bool(OPENING.search(text))


def mapping(value: object) -> Mapping[str, object]:
    """The value if it is an object; else an empty one."""
    return value if isinstance(value, dict) else {}


def at_path(value: object, path: str) -> object:
    """What stands under keys and list positions, with dots between them; None if nothing does."""
    for key in path.split("."):
        if isinstance(value, list):
            value = value[int(key)] if key.isdigit() and int(key) < len(value) else None
        else:
            value = mapping(value).get(key)
    return value


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
