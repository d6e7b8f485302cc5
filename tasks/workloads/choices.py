"""Choices that forms and flags offer by name: light, where the parameter models import pydantic."""

from typing import Literal

ChangePointMethod = Literal["bayes", "pelt", "kernel", "binseg"]
HoldOut = Literal["auto", "round", "time"]
