"""Texts from a log inside markdown: nothing in them is read as markup."""

import re

SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~])")


def plain(text: str) -> str:
    """The text so that markdown and HTML show it as it is, on one line."""
    escaped = SPECIAL.sub(r"\\\1", text)
    return " ".join(escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").split())
