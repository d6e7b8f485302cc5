"""Nodes and benchmark types as words of a figure or page."""

from collections.abc import Mapping
from typing import Any

from tasks.nodes.node_words import called
from tasks.report.style import plain_label

HASH_DIGITS = 8
OVERALL = "all"  # the aspect of the one number of a node, from all aspects
SENTENCE_CHARS = 600


def node_name(row: Mapping[Any, Any]) -> str:
    """The node of a row, and whether it is emulated."""
    return called(plain_label(str(row["node"])), row.get("is_emulated"))


def type_name(benchmark: str, template_hash: str) -> str:
    """A benchmark type: the benchmark with the first digits of its template's hash, where it has one."""
    return f"{benchmark}@{template_hash[:HASH_DIGITS]}" if template_hash else benchmark


def aspect_name(aspect: str) -> str:
    """An aspect, or what stands for all of them."""
    return "all aspects" if aspect == OVERALL else aspect


def sentence(text: str) -> str:
    """Words from elsewhere on one line."""
    return plain_label(str(text), SENTENCE_CHARS)
