"""The kinds of charts of all words: a tidy frame in, one declarative chart out (Vega-Lite, which Vega draws).

Colours are named (@blue), so that light, dark and print each have their own. A chart holds at most MOST_BYTES of data:
more is binned or sampled before, and said beside it."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from tasks.errors import WhorlError

Kind = Literal["number", "count", "share", "seconds", "log", "time", "name"]
Chart: TypeAlias = dict[str, Any]
ROWS = "rows"  # what a chart calls its data
MOST_BYTES = 200_000
WIDTH_PX, ROW_PX, HEIGHT_PX, TALL_PX = 560, 24, 240, 360
DIGITS, PNG_SCALE = 5, 1.5
MANY = 600  # points of a line that are drawn beside it
LEAST_SHARE = 1e-4  # at which bars on a logarithmic axis begin
MOST_WRITTEN = 40  # rows or columns of a heat map whose cells hold their number
REACH = 4.0  # deviations at which a colour is strongest
MOST_DRAWN = 16  # images that are kept: flows of one process show the same figure one after the other
MOST_TONES = 256  # of an image; a palette can have no more
SECONDS = (
    *(step * 10.0**power for power in (-4, -3, -2, -1) for step in (1, 2, 5)),
    *(1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800),
    *(3_600, 7_200, 18_000, 36_000, 86_400, 172_800, 432_000, 864_000, 8_640_000),
)
SECOND_WORDS = (
    "datum.value < 1 ? format(datum.value * 1000, '~r') + ' ms' : datum.value < 60 ? format(datum.value, '~r') + ' "
    "s' : datum.value < 3600 ? format(datum.value / 60, '~r') + ' min' : datum.value < 86400 ? "
    "format(datum.value / 3600, '~r') + ' h' : format(datum.value / 86400, '~r') + ' d'"
)
NUMBER_WORDS = "abs(datum.value) < 10000 ? format(datum.value, '~r') : format(datum.value, '~s')"
TIMES = {"year": "%Y", "month": "%b %Y", "week": "%-d %b", "date": "%-d %b", "day": "%-d %b", "hours": "%H:%M",
         "minutes": "%H:%M", "seconds": "%H:%M:%S"}  # fmt: skip
BLUE, ORANGE, INK, MUTED, GRID, PALE, MIDDLE = "@blue", "@orange", "@ink", "@muted", "@grid", "@pale", "@middle"
PALETTE = {
    "light": {
        **{"paper": "#ffffff", "ink": "#1b1f24", "muted": "#5b6571", "grid": "#d9dee4", "blue": "#0072b2"},
        **{"orange": "#c24e00", "pale": "#c6dbef", "middle": "#6baed6", "green": "#00795a", "violet": "#7a5195"},
    },
    "dark": {
        **{"paper": "#14181d", "ink": "#e8ebee", "muted": "#a3adb8", "grid": "#38424d", "blue": "#56b4e9"},
        **{"orange": "#ff9a3c", "pale": "#1b3a57", "middle": "#2f78b4", "green": "#3fbf9b", "violet": "#b48ad1"},
    },
}
ONCE: dict[str, Any] = {"data": {"values": [{}]}}  # for a layer that is drawn once, whatever the rows
SERIES = (BLUE, ORANGE, "@green", "@violet", INK, MUTED)


@dataclass(frozen=True)
class Axis:
    """field: the column; title: what it is, with its unit; kind: the scale, and how ticks are written."""

    field: str
    title: str
    kind: Kind = "number"


def spec_of(chart: Chart) -> Chart:
    """The chart itself. Raises WhorlError for one with more data than a page should carry."""
    size = len(json.dumps(chart["datasets"]))
    if size > MOST_BYTES:
        raise WhorlError(f"a chart holds {size:,} bytes of data; expected at most {MOST_BYTES:,}: bin or sample before")
    return chart


def template_of(chart: Chart) -> Chart:
    """The chart without its data, for pages that each bring rows of their own."""
    return {name: part for name, part in chart.items() if name != "datasets"}


def themed(spec: Mapping[str, Any], scheme: Literal["light", "dark"] = "light") -> dict[str, Any]:
    """The chart with the colours of a scheme."""
    text = json.dumps(spec)
    for name, colour in PALETTE[scheme].items():
        text = text.replace(f'"@{name}"', f'"{colour}"')
    coloured: dict[str, Any] = json.loads(text)
    colours = PALETTE[scheme]
    words = {"labelColor": colours["ink"], "titleColor": colours["ink"]}
    coloured["config"] = {
        "background": colours["paper"],
        "font": "sans-serif",
        "view": {"stroke": None},
        "axis": {**words, "gridColor": colours["grid"], "domainColor": colours["muted"], "tickColor": colours["muted"]},
        "header": words,
        "legend": words,
        "title": {"color": colours["ink"]},
        "text": {"color": colours["ink"]},
    }
    return coloured


def to_png(spec: Mapping[str, Any]) -> bytes:
    """The chart as an image in light colours, of a tenth of the bytes that vl-convert makes of it."""
    return _drawn(json.dumps(themed(spec)))


@lru_cache(maxsize=MOST_DRAWN)
def _drawn(text: str) -> bytes:
    import vl_convert
    from PIL import Image

    found = io.BytesIO()
    image = Image.open(io.BytesIO(vl_convert.vegalite_to_png(text, scale=PNG_SCALE))).convert("RGB")
    image.quantize(MOST_TONES).save(found, "PNG", optimize=True)
    return found.getvalue()


def tidy(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows as a chart holds them: times as milliseconds of UTC, numbers with five digits, the rest as text."""
    columns: dict[str, Any] = {}
    for name, column in frame.items():
        if pd.api.types.is_datetime64_any_dtype(column):
            values: Any = (column - pd.Timestamp(0)) / pd.Timedelta(milliseconds=1)
        elif pd.api.types.is_bool_dtype(column) or pd.api.types.is_integer_dtype(column):
            values = column
        elif pd.api.types.is_numeric_dtype(column):
            values = column.astype(float).map(lambda value: float(f"{value:.{DIGITS}g}"))
            values = values.where(np.isfinite(values))
        else:
            values = column.astype(str)
        columns[str(name)] = values
    return pd.DataFrame(columns)


def parts_of(frame: pd.DataFrame, key: str) -> tuple[list[str], dict[str, list[list[Any]]]]:
    """The columns of a frame but `key`, and by its values the rows, as a chart holds them; missing ones are None."""
    rows = tidy(frame.drop(columns=key))
    values = rows.astype(object).where(rows.notna(), None).to_numpy()
    places = frame.groupby(key, sort=False).indices
    return [str(name) for name in rows], {str(name): values[at].tolist() for name, at in places.items()}


def _mark(kind: str, encoding: Mapping[str, Any], filtered: str = "", **properties: Any) -> dict[str, Any]:
    """A layer of marks. filtered: condition of the rows that have one."""
    shown = {"mark": {"type": kind, **properties}, "encoding": dict(encoding)}
    return shown | ({"transform": [{"filter": filtered}]} if filtered else {})


def _named(field: str, **more: Any) -> dict[str, Any]:
    return {"field": field, "type": "nominal", **more}


def _amount(field: str, **more: Any) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", **more}


def _position(axis: Axis, *, grid: bool = True, **more: Any) -> dict[str, Any]:
    """The encoding of an axis."""
    if axis.kind == "name":
        return _named(axis.field, title=axis.title or None, sort=None, **more)
    ticks: dict[str, Any] = {"grid": grid, "labelOverlap": True}
    if axis.kind == "time":
        encoding = {"field": axis.field, "type": "temporal", "title": axis.title}
        return encoding | {"scale": {"type": "utc", "padding": 8}, "axis": ticks | {"format": TIMES}} | more
    scale: dict[str, Any] = {"type": "log", "nice": False, "padding": 8}
    if axis.kind == "seconds":
        ticks |= {"values": list(SECONDS), "labelExpr": SECOND_WORDS}
    elif axis.kind == "log":
        ticks |= {"labelExpr": NUMBER_WORDS}
    else:
        words = "format(datum.value, '.0%')" if axis.kind == "share" else NUMBER_WORDS
        starts_at_0 = axis.kind != "number"
        ticks |= {"labelExpr": words, "tickCount": 6}
        scale = {"zero": starts_at_0, "nice": starts_at_0, "padding": 0 if starts_at_0 else 4}
    return _amount(axis.field, title=axis.title, axis=ticks, scale=scale) | more


def _colour(field: str, colours: Mapping[str, str]) -> dict[str, Any]:
    legend = {"title": None, "orient": "top", "columns": 3, "labelLimit": 260} if len(colours) > 1 else None
    return _named(field, scale={"domain": list(colours), "range": list(colours.values())}, legend=legend)


def _tips(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """What is said of a mark under the mouse: all columns of its row."""
    time = {"type": "temporal", "timeUnit": "utcyearmonthdatehoursminutes"}
    return [
        {"field": name, "title": name.removesuffix("_at"), **time}
        if name.endswith("_at")
        else (_amount if pd.api.types.is_numeric_dtype(frame[name]) else _named)(name, title=name)
        for name in map(str, frame)
    ]


def _tone(field: str, colours: Mapping[str, str] | None) -> dict[str, Any]:
    """Colours by name; without any one colour for all."""
    return _colour(field, colours) if field and colours else {"value": BLUE}


def _in_rows(row: str, *, grid: bool = False) -> dict[str, Any]:
    """The encoding of rows by their names, in the order of the frame."""
    return {"y": _named(row, sort=None, title=None, axis={"labelLimit": 220, "grid": grid})}


def _rows_px(rows: pd.DataFrame, row: str, px: int = ROW_PX) -> int:
    """The height of a chart of named rows."""
    return max(60, px * rows[row].nunique())


def _layered(
    rows: pd.DataFrame, layers: Sequence[Chart], height: Any, panel: str = "", *,
    width: int = WIDTH_PX, independent: Sequence[str] = (),
) -> Chart:  # fmt: skip
    """Layers over the same rows as one chart; panel: column of names, a row of charts each, in the order of the frame,
    each with scales of its own for the axes that `independent` names."""
    held = rows.astype(object).where(rows.notna(), None).to_dict("records")  # missing ones are None
    data = {"datasets": {ROWS: held}, "data": {"name": ROWS}}
    layered = {"layer": list(layers), "width": width, "height": height}
    if not panel:
        return data | layered
    header = {"title": None, "labelAnchor": "start", "labelOrient": "top", "labelFontWeight": "bold", "labelLimit": 520}
    names = _named(panel, sort=list(dict.fromkeys(rows[panel])), header=header)
    apart = {"resolve": {"scale": dict.fromkeys(independent, "independent")}} if independent else {}
    return data | {"facet": {"row": names}, "spec": layered, "spacing": 14} | apart


def _rule(at: Mapping[str, Any]) -> dict[str, Any]:
    """A dashed line at a place on x."""
    return _mark("rule", {"x": at}, color=ORANGE, strokeDash=[4, 3]) | (ONCE if "datum" in at else {})


def _zoomable(chart: Chart, encodings: Sequence[Literal["x", "y"]] = ("x", "y")) -> Chart:
    """The chart with axes that ctrl and the wheel widen, and that the mouse drags; the wheel alone turns the page."""
    select = {"type": "interval", "encodings": list(encodings), "zoom": "wheel![event.ctrlKey]"}
    first, *rest = chart["layer"]
    return chart | {"layer": [first | {"params": [{"name": "zoom", "select": select, "bind": "scales"}]}, *rest]}


def scatter(frame: pd.DataFrame, x: Axis, y: Axis, lines: Mapping[str, float]) -> Chart:
    """A mark a row. lines: words and how many times x they lie at y, on two axes alike."""
    rows, places = tidy(frame), {"x": _position(x), "y": _position(y)}
    ends = [float(rows[x.field].min()), float(rows[x.field].max())]
    guides = [{"line": name, x.field: at, y.field: at * k} for name, k in lines.items() for at in ends]
    tones = _colour("line", dict(zip(lines, (MUTED, ORANGE), strict=False)))
    ruled = {"x": _amount(x.field), "y": _amount(y.field), "color": tones}
    marks = _mark("circle", {**places, "tooltip": _tips(rows)}, size=34, opacity=0.65, color=BLUE)
    guided = _mark("line", ruled, strokeDash=[5, 3], strokeWidth=1.5) | {"data": {"name": "guides"}}
    chart = _layered(rows, [marks, guided], TALL_PX)
    return _zoomable(chart | {"datasets": {**chart["datasets"], "guides": guides}})


def lines(
    frame: pd.DataFrame, x: Axis, y: Axis, *, series: str = "", rules: Mapping[str, float] | None = None,
    steps: bool = False, height: int = HEIGHT_PX,
) -> Chart:  # fmt: skip
    """A line a series, with points to hover; rules: words of vertical lines and where on x they stand."""
    rows = tidy(frame)
    names = dict.fromkeys(rows[series]) if series else ()
    there = {"x": _position(x), "y": _position(y), "color": _tone(series, dict(zip(names, SERIES * 3, strict=False)))}
    layers = [_mark("line", there, interpolate="step-after" if steps else "linear", strokeWidth=1.8)]
    if len(rows) <= MANY:
        layers.append(_mark("circle", {**there, "tooltip": _tips(rows)}, size=30))
    for words, at in (rules or {}).items():
        label = _mark("text", {"x": {"datum": at}}, text=words, color=ORANGE, align="left", dx=4, y=8)
        layers += [_rule({"datum": at}), label | ONCE]
    return _zoomable(_layered(rows, layers, height))


def intervals(
    frame: pd.DataFrame, value: Axis, row: str, *, tone: str = "", colours: Mapping[str, str] | None = None,
    panel: str = "",
) -> Chart:  # fmt: skip
    """A dot a row with its interval, columns low and high. tone: column of names by `colours`."""
    rows = tidy(frame)
    there = {"color": _tone(tone, colours), **_in_rows(row)}
    from_low = {"x": _position(Axis("low", value.title, value.kind)), "x2": {"field": "high"}}
    bar = _mark("rule", there | from_low, strokeWidth=3, opacity=0.45)
    dot = _mark("circle", {**there, "x": _position(value), "tooltip": _tips(rows)}, size=70, opacity=1)
    parts = [part for _, part in rows.groupby(panel)] if panel else [rows]
    return _layered(rows, [bar, dot], max(_rows_px(part, row) for part in parts), panel, independent=("x", "y"))


def swarm(frame: pd.DataFrame, value: Axis, row: str, level: str) -> Chart:
    """A dot a mark in its row, spread upwards and downwards where they are many.

    level: column of 0 to 1 that colours from blue to orange."""
    golden = 0.6180339887498949
    rows = tidy(frame).assign(spread=[(at * golden) % 1 for at in range(len(frame))])
    scale = {"range": [BLUE, GRID, ORANGE], "domain": [0, 0.5, 1], "interpolate": "rgb"}
    legend = {"title": "value of the feature, low to high", "orient": "top", "values": [0, 1]}
    there = {
        "x": _position(value),
        "yOffset": _amount("spread", scale={"domain": [-0.6, 1.6]}),
        "color": _amount(level, scale=scale, legend=legend),
        "tooltip": _tips(rows.drop(columns="spread")),
    }
    return _layered(rows, [_mark("circle", there | _in_rows(row), size=22, opacity=0.6)], _rows_px(rows, row, px=34))


def heatmap(frame: pd.DataFrame, row: Axis, column: Axis, share: str) -> Chart:
    """Cells of shares in percent of their row, with their number; the frame holds one row a cell that has any."""
    rows = tidy(frame)
    n_rows, n_columns = rows[row.field].nunique(), rows[column.field].nunique()
    there = {
        "x": _named(column.field, sort=None, title=column.title, axis={"orient": "top", "labelAngle": -40}),
        "y": _named(row.field, sort=None, title=row.title, axis={"labelLimit": 200}),
        "tooltip": _tips(rows),
    }
    tone = _amount(share, scale={"domain": [0, 1], "range": [PALE, BLUE]}, legend=None)
    light = {"condition": {"test": f"datum['{share}'] > 0.6", "value": "@paper"}, "value": INK}
    written = {**there, "text": _amount(share, format=".0%"), "color": light}
    layers = [_mark("rect", {**there, "color": tone})]
    if max(n_rows, n_columns) <= MOST_WRITTEN:
        layers.append(_mark("text", written, f"datum['{share}'] >= 0.005", fontSize=10))
    size = max(26, min(44, WIDTH_PX // max(n_columns, 1)))
    return _layered(rows, layers, max(24, size * 2 // 3) * n_rows, width=size * n_columns)


def histogram(
    frame: pd.DataFrame, x: Axis, share: Axis, *, end: str = "end", panel: str = "", series: str = "",
    colours: Mapping[str, str] | None = None, rule: float | None = None, overlay: str = "", height: int = 90,
) -> Chart:  # fmt: skip
    """Bars from `x.field` to `end` of each bin; overlay: column of shares that a line shows above them."""
    rows, at = tidy(frame), _position(x, grid=False)
    floor = {"datum": LEAST_SHARE if share.kind == "log" else 0}
    shares = _position(share, stack=None)
    if share.kind == "log":  # a line a power of ten: of all ticks a strip of a few lines would be grey
        shares["scale"] |= {"domainMin": LEAST_SHARE, "padding": 0}
        shares["axis"] |= {"values": [10.0**power for power in range(-4, 1)]}
    tall = {"y": shares, "y2": floor, "color": _tone(series, colours)}
    layers = [_mark("bar", {"x": at, "x2": {"field": end}, "tooltip": _tips(rows), **tall}, opacity=0.75)]
    if overlay:
        above = {"x": at, "y": _amount(overlay)}
        layers.append(_mark("line", above, interpolate="step-after", color=ORANGE, strokeWidth=2))
    if rule is not None:
        layers.append(_rule({"datum": rule}))
    return _layered(rows, layers, height, panel)


def strips(
    frame: pd.DataFrame, x: Axis, y: Axis, panel: str, *, level: str, change: str = "", colour: str = "",
    colours: Mapping[str, str] | None = None,
) -> Chart:  # fmt: skip
    """A strip a panel with an axis of its own: points over x. level: column of a line; change: column of places on x
    with a dashed line; colour: column of names by `colours`."""
    rows, at = tidy(frame), _position(x, grid=False)
    there = {"x": at, "y": _position(y), "color": _tone(colour, colours), "tooltip": _tips(rows)}
    line = {"x": at, "y": _amount(level)}
    layers = [_rule({"field": change, "type": at["type"]})] if change else []
    layers.append(_mark("line", line, color=MUTED, strokeWidth=1.4, interpolate="step-after"))
    layers.append(_mark("circle", there, size=16, opacity=0.8))
    return _layered(rows, layers, 84, panel, independent=("y",))


def fan(rows: pd.DataFrame, tones: Mapping[str, str], *, is_next: bool = False, height: int = 300) -> Chart:
    """What was predicted and what came. rows: submitted_at, runtime_s (missing for a run to come), is (one of `tones`),
    and p05_s, p25_s, p50_s, p75_s, p95_s (missing where nothing was predicted); is_next: of the next run alone, drawn
    as a bar in place of a band."""
    drawn, predicted = tidy(rows), "isValid(datum.p50_s)"

    def at(field: str, **more: Any) -> dict[str, Any]:
        x = _position(Axis("submitted_at", "submitted (UTC)", "time"))
        return {"x": x, "y": _position(Axis(field, "runtime", "seconds")), **more}

    kind, band = ("rule", {"strokeWidth": 9}) if is_next else ("area", {"interpolate": "step", "opacity": 0.75})
    middle: dict[str, Any] = {"color": BLUE, "interpolate": "step", "strokeWidth": 1.6}
    if is_next:
        middle = {"size": 16, "thickness": 3, "color": INK}
    came = at("runtime_s", color=_colour("is", tones), tooltip=_tips(drawn))
    layers = [
        _mark(kind, at("p05_s", y2={"field": "p95_s"}), predicted, color=PALE, **band),
        _mark(kind, at("p25_s", y2={"field": "p75_s"}), predicted, color=MIDDLE, **band),
        _mark("tick" if is_next else "line", at("p50_s"), predicted, **middle),
        _mark("circle", came, "isValid(datum.runtime_s)", size=28, opacity=0.85),
    ]
    return _zoomable(_layered(drawn, layers, height))


def spans(
    frame: pd.DataFrame, x: Axis, row: str, *, end: str = "end", level: str = "", colour: str = "",
    colours: Mapping[str, str] | None = None, panel: str = "", row_px: int = 20,
) -> Chart:  # fmt: skip
    """Bars from x to `end` in the row that each is of. level: column of deviations, blue below and orange above,
    stronger up to REACH; colour: column of names by `colours`."""
    rows, tone = tidy(frame), _tone(colour, colours)
    if level:
        tones = [BLUE, "@paper", ORANGE]
        scale = {"domain": [-REACH, 0, REACH], "range": tones, "clamp": True, "interpolate": "rgb"}
        tone = _amount(level, scale=scale, legend={"title": "deviations from the usual", "orient": "top"})
    there = {"x": _position(x, grid=False), "x2": {"field": end}, "color": tone, "tooltip": _tips(rows)}
    bars = _mark("bar", there | _in_rows(row), height={"band": 0.8})
    return _layered(rows, [bars], max(40, row_px * rows[row].nunique()), panel, independent=("x",))


def timeline(frame: pd.DataFrame, x: Axis, row: str, colour: str, colours: Mapping[str, str], strength: str) -> Chart:
    """A mark a happening in its row over time, stronger in colour by `strength` (0 to 1). colour: column of names."""
    rows = tidy(frame)
    there = {
        "x": _position(x),
        "color": _colour(colour, colours),
        "opacity": _amount(strength, scale={"domain": [0, 1], "range": [0.25, 1]}, legend=None),
        "tooltip": _tips(rows),
    }
    marks = _mark("circle", there | _in_rows(row, grid=True), size=70)
    return _zoomable(_layered(rows, [marks], {"step": ROW_PX}), ["x"])


def sampled(frame: pd.DataFrame, most: int) -> pd.DataFrame:
    """At most so many rows, evenly over their order."""
    if len(frame) <= most:
        return frame
    return frame.iloc[np.unique(np.linspace(0, len(frame) - 1, most).round().astype(int))]


def binned(values: Any, edges: Any) -> pd.DataFrame:
    """The bins of a histogram: low, end and share of the values."""
    n = np.histogram(values, edges)[0]
    return pd.DataFrame({"low": edges[:-1], "end": edges[1:], "share": n / max(len(values), 1)})


def row_shares(counts: Any) -> Any:
    """Shares of each row of counts, (n_rows, n_columns); a row without any is all NaN."""
    counts = np.asarray(counts)
    sums = counts.sum(axis=1, keepdims=True)
    return np.divide(counts, sums, out=np.full(counts.shape, np.nan), where=sums > 0)


def cells_of(
    counts: Any, rows: Sequence[str], columns: Sequence[str], *, of: str, to: str, what: str = "runs"
) -> pd.DataFrame:
    """The cells of a table of counts for a heat map: `of`, `to`, share of the row, and how many; every cell of a row
    with any stands in it, so that rows and columns keep their order."""
    counts = np.asarray(counts)
    shares = row_shares(counts)
    cells = [
        {of: rows[i], to: columns[j], "share": float(shares[i, j]), what: int(counts[i, j])}
        for i, j in np.ndindex(*counts.shape)
        if counts[i].sum()
    ]
    return pd.DataFrame(cells, columns=[of, to, "share", what])
