"""What the pages of all words share: templates that escape what comes from a log, files replaced in one step."""

import hashlib
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tasks.quantities import MISSING, duration, number, ratio, share
from tasks.report.style import plain_label

TEMPLATES = Path(__file__).parent / "templates"
LINE_CHARS = 160
STRIP_PX, STRIP_MARGIN_PX = 144, 3
SLUG_CHARS = 80


@dataclass(frozen=True)
class TimeScale:
    """A logarithmic scale of times from low_s to high_s, for small drawings in table cells."""

    low_s: float
    high_s: float


def render(template: str, values: Mapping[str, Any]) -> str:
    """The text of a page; everything in it is escaped unless it is Markup made by our own figures."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters.update(
        duration=duration,
        number=number,
        ratio=ratio,
        share=share,
        moment=moment,
        one_line=lambda text: plain_label(str(text), LINE_CHARS),
        file_name=lambda origin: str(origin).rstrip("/").rsplit("/", 1)[-1],
        time_scale=time_scale,
        place=_place,
    )
    style = Markup((TEMPLATES / "style.css").read_text())  # ours: holds no text of a log
    return environment.get_template(template).render(**values, style=style)


def write_page(folder: Path, name: str, text: str) -> Path:
    """Write <folder>/<name>.html whole or not at all; characters that no file name should have are replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{file_slug(name)}.html"
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
    return path


def file_slug(name: str) -> str:
    """The name itself if it is plain (letters, digits, dot, dash, underscore), else with a hash that keeps it apart."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:SLUG_CHARS].lstrip(".")
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def moment(time: datetime | None) -> str:
    """Day and minute, as people write them: 1993-10-01 14:35."""
    return MISSING if time is None or pd.isna(time) else f"{time:%Y-%m-%d %H:%M}"


def time_scale(groups: pd.DataFrame) -> TimeScale:
    """A scale that holds the 5 and 95 % quantiles of all the jobs of a table."""
    ends = pd.concat([groups["p05_s"], groups["p95_s"]])
    positive = ends[ends > 0]
    if positive.empty:
        return TimeScale(1, 1)
    return TimeScale(float(positive.min()), float(positive.max()))


def _place(time_s: float, scale: TimeScale) -> str:
    """Where a time stands on the strip of a table cell, in pixels; times below the scale stand at its start."""
    span = math.log(scale.high_s / scale.low_s)
    share_of_span = math.log(max(time_s, scale.low_s) / scale.low_s) / span if span else 0.5
    return f"{STRIP_MARGIN_PX + share_of_span * (STRIP_PX - 2 * STRIP_MARGIN_PX):.1f}"
