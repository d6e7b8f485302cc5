"""Markdown artifacts: one stable key for each report, so that Prefect keeps its history."""

import hashlib
import re
from collections.abc import Sequence

from prefect.artifacts import create_markdown_artifact

from tasks.markdown import plain

MAX_PART_CHARS = 60
HASH_CHARS = 8


def artifact_key(*parts: str) -> str:
    """The key of a report: its parts in small letters, digits and dashes, which is all that Prefect allows.

    A part that loses something on the way gets a hash, so that two sources never share a report."""
    return "-".join(_slug(part) for part in parts)


def _slug(part: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-")[:MAX_PART_CHARS]
    if slug == part:
        return slug
    return f"{slug}-{hashlib.sha256(part.encode()).hexdigest()[:HASH_CHARS]}".strip("-")


def publish(key: str, markdown: str, description: str) -> None:
    """Show a report in Prefect's UI, under the run and among the artifacts."""
    create_markdown_artifact(markdown=markdown, key=key, description=description)


def joined(parts: Sequence[str]) -> str:
    """The parts of a report below each other; empty ones are left out."""
    return "\n\n".join(part for part in parts if part)


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A GitHub table; numbers with thousands separators, and nothing from a log is read as markup."""
    lines = [
        _line(header),
        _line(["---:" if _is_number_column(rows, i) else "---" for i in range(len(header))]),
    ]
    return "\n".join([*lines, *(_line([_cell(value) for value in row]) for row in rows)])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else plain(str(value))


def _is_number_column(rows: Sequence[Sequence[object]], i: int) -> bool:
    return bool(rows) and all(isinstance(row[i], int | float) and not isinstance(row[i], bool) for row in rows)
