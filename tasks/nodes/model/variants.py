"""Whose choices the model follows where the two differ. Light: flags of the command line need it."""

from typing import Literal

Variant = Literal["ours", "paper"]
