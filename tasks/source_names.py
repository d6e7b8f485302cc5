"""Names of sources: what they may be, and the one that rows are kept under when none is given."""

from tasks.errors import BadSetting

DEFAULT_SOURCE = "main"
ONLY_SOURCE = ""  # as the name of a source to ask: the only one there is
MAX_SOURCE_CHARS = 100


def checked_source(source: str) -> str:
    """The name itself. Raises BadSetting if not everyone could type it."""
    if not source or source != source.strip() or not source.isprintable() or len(source) > MAX_SOURCE_CHARS:
        expected = f"1 to {MAX_SOURCE_CHARS} printable characters without blanks at the ends"
        raise BadSetting(f"source {source!r}: not a name that everyone can type; expected {expected}; choose another")
    return source
