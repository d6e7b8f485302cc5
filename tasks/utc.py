"""Times as programs read them: ISO 8601. Times without a zone are UTC in all of whorl, and say so by a Z."""

from datetime import datetime


def utc_text(moment: datetime) -> str:
    """2026-01-31T12:00:00Z; a time with a zone keeps its own."""
    return moment.isoformat() + ("" if moment.tzinfo else "Z")
