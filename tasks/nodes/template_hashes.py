"""Hashes of templates: with the benchmark they make its type, by their first digits."""

import hashlib
import re

DIGEST_DIGITS = frozenset({8, 16, 32, 40, 56, 64, 96, 128})  # of the usual hashes
HEXADECIMAL = re.compile(r"[0-9a-f]+")
DECIMAL = re.compile(r"[0-9]+")
WHOLE_DIGITS = 8  # a text of so many is told whole in the name of a type


def hash_of(template: str) -> str:
    """The hash of a template's text, 64 hexadecimal digits."""
    return hashlib.sha256(template.encode()).hexdigest()


def as_hash(given: str) -> str:
    """What somebody gave as a template's hash, as one whose first digits tell it apart.

    A name (template-1, template-2), a number or a digest of unusual length is hashed: its first digits may be those of
    another one."""
    told = given.lower()
    is_digest = len(told) in DIGEST_DIGITS and HEXADECIMAL.fullmatch(told)
    if is_digest and (len(told) == WHOLE_DIGITS or not DECIMAL.fullmatch(told)):
        return told
    return hash_of(given)


def template_hash(template: str | None, given: str | None) -> str | None:
    """The hash that is given, else that of the template; None for none."""
    if given:
        return as_hash(given)
    return hash_of(template) if template else None
