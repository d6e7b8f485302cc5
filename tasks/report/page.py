"""Results as web pages: a shell with the answer, the description as data in it, and the scripts beside it.

A page needs no request outside its folder and runs under a strict content security policy, also from a file."""

import functools
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from tasks.report import charts
from tasks.report.result import Cell, Column, Figure, Result, Section, Table, one_line, slug, spoken
from tasks.storage import whole
from tasks.warehouse.sources import code_version

TEMPLATES = Path(__file__).parent / "templates"
ASSETS = "assets"
SLUG_CHARS = 80
RAW_DIGITS = 6


def file_slug(name: str) -> str:
    """The name itself if it is plain (letters, digits, dot, dash, underscore), else with a hash that keeps it apart."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:SLUG_CHARS].lstrip(".")
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def describe(result: Result) -> dict[str, Any]:
    """The result as site.js shows it: texts as they are written, numbers beside them, charts as Vega-Lite."""
    return {
        **{key: getattr(result, key) for key in ("title", "answer", "certainty", "action", "state", "again")},
        "madeOf": result.made_of,
        "method": result.method,
        "reasons": list(result.reasons),
        "notices": list(result.notices),
        "facts": [{"key": fact.key, "text": fact.text, "words": fact.words} for fact in result.facts],
        "sections": [_section(part) for part in result.parts],
    }


def _section(part: Section) -> dict[str, Any]:
    described = {
        "id": slug(part.title),
        "title": one_line(part.title),
        "words": part.nothing if part.is_empty else part.words,
        "evidence": part.evidence,
        "open": part.is_open,
        "empty": part.is_empty,
        "lines": list(part.lines),
        "tables": [_table(table) for table in part.tables if len(table.rows)],
        "figures": [_figure(figure) for figure in part.figures],
    }
    return {key: value for key, value in described.items() if value not in ("", [], False)} | {"id": described["id"]}


def _figure(figure: Figure) -> dict[str, Any]:
    described = {key: getattr(figure, key) for key in ("name", "title", "words", "evidence")}
    if figure.use:
        return described | {"use": figure.use, "columns": list(figure.columns), "rows": list(figure.rows)}
    return described | {"spec": charts.spec_of(figure.chart()) if figure.chart else None}


def _table(table: Table) -> dict[str, Any]:
    return {
        **{key: getattr(table, key) for key in ("title", "words", "more")},
        "list": table.name,
        "columns": [
            {"key": heading.key, "title": heading.title, "num": heading.is_number, "means": heading.meaning}
            for heading in table.columns
        ],
        "rows": [[_cell(column, row) for column in table.columns] for row in table.rows],
    }


def _cell(column: Column, row: Mapping[str, Any]) -> Any:
    """A text; or text and number; or these with an address, notes and whether it is marked; missing ends are cut."""
    value = row.get(column.key)
    if isinstance(value, Cell):
        return [value.text, value.value, None, list(value.notes), value.is_marked]
    text, href = column.show(value), column.address(row)
    raw = _raw(value) if column.is_number else None
    if href is not None:
        return [text, raw, href]
    return text if raw is None else [text, raw]


def _raw(value: Any) -> float | int | None:
    """A number to sort by and to download; None for anything else."""
    if hasattr(value, "timestamp"):
        return None if value != value else int(value.timestamp())
    if isinstance(value, str) or value is None or value != value:
        return None
    number = float(value)
    return None if number in (float("inf"), float("-inf")) else float(f"{number:.{RAW_DIGITS}g}")


def data_block(value: Any) -> Markup:
    """A value as JSON inside a page or script: nothing in it ends the element that holds it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)
    for char, code in (
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u2028", "\\u2028"),
        ("\u2029", "\\u2029"),
    ):
        text = text.replace(char, code)
    return Markup(text)


def page_text(description: Mapping[str, Any], *, kind: str = "result", parts: str = "") -> str:
    """The HTML of a page. kind: what site.js makes of it (index, result, item); parts: folder of an item's data."""
    return _template().render(
        found=description,
        kind=kind,
        parts=parts,
        data=data_block(description),
        assets=ASSETS,
        code_version=f"whorl {code_version()}",
    )


@functools.cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["prose"] = _prose
    return environment.get_template("page.html")


def _prose(text: str) -> Markup:
    """A sentence as HTML, its commands as buttons that copy them."""
    button = Markup('<code role="button" tabindex="0" class="command" title="copy">{}</code>')
    return Markup("").join(button.format(part) if is_command else escape(part) for part, is_command in spoken(text))


def write_text(path: Path, text: str) -> Path:
    """Write a file whole or not at all; its folder is made if it is not there."""
    with whole(path) as draft:
        draft.write_text(text, encoding="utf-8")
    return path


def write_assets(folder: Path) -> None:
    """Write what all pages of a folder share, where it is not there yet or is of another version."""
    import vl_convert

    for name in ("site.js", "site.css"):
        text = (TEMPLATES / name).read_text(encoding="utf-8").replace('"PALETTE"', json.dumps(charts.PALETTE))
        path = folder / ASSETS / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)
    if not (folder / ASSETS / "nav.js").exists():
        write_text(folder / ASSETS / "nav.js", "window.whorlNav=[];\n")
    vega = folder / ASSETS / "vega.js"
    head = f"// Vega, Vega-Lite and Vega-Embed as bundled by vl-convert {version('vl-convert-python')}\n"
    if not vega.exists() or vega.open(encoding="utf-8").readline() != head:
        write_text(vega, head + vl_convert.javascript_bundle())  # type: ignore[call-arg]  # its stub lacks the default


def write_result(folder: Path, name: str, result: Result) -> Path:
    """Write <folder>/<name>.html with the scripts that it needs, and return its path."""
    write_assets(folder)
    return write_text(folder / f"{file_slug(name)}.html", page_text(describe(result)))


def write_images(folder: Path, figures: Sequence[Figure]) -> list[Path]:
    """Write <figure>.png for each figure that has something to draw, whole or not at all."""
    paths = []
    for figure in figures:
        if figure.chart is not None:
            path = folder / f"{file_slug(figure.name)}.png"
            with whole(path) as draft:
                draft.write_bytes(figure.png())
            paths.append(path)
    return paths


def write_figures(folder: Path, name: str, result: Result) -> list[Path]:
    """Write the page of a result, and an image of each of its figures; the page comes first."""
    figures = [*result.figures, *(figure for part in result.sections for figure in part.figures)]
    return [write_result(folder, name, result), *write_images(folder, figures)]
