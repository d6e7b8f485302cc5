"""The kinds of charts of all words: a tidy frame in, one declarative chart out (Vega-Altair).

Colours are named (@blue), so that light, dark and print each have their own. A chart holds at most MOST_BYTES of data:
more is binned or sampled before, and said beside it. Altair takes two seconds to import, so functions import it."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from tasks.errors import WhorlError

if TYPE_CHECKING:
    import altair as alt

Kind = Literal["number", "count", "share", "seconds", "log", "time", "name"]
Chart: TypeAlias = "alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart"
MOST_BYTES = 200_000
WIDTH_PX, ROW_PX, HEIGHT_PX, TALL_PX = 560, 24, 240, 360
DIGITS = 5
MANY = 600  # points of a line that are drawn beside it
LEAST_SHARE = 1e-4  # at which bars on a logarithmic axis begin
REACH = 4.0  # deviations at which a colour is strongest
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
SERIES = (BLUE, ORANGE, "@green", "@violet", INK, MUTED)


@dataclass(frozen=True)
class Axis:
    """field: the column; title: what it is, with its unit; kind: the scale, and how ticks are written."""

    field: str
    title: str
    kind: Kind = "number"


def spec_of(chart: Chart) -> dict[str, Any]:
    """The chart as Vega-Lite. Raises WhorlError for one with more data than a page should carry."""
    import altair as alt

    alt.data_transformers.disable_max_rows()
    spec: dict[str, Any] = chart.to_dict()
    size = len(json.dumps(spec.get("datasets", {})))
    if size > MOST_BYTES:
        raise WhorlError(f"a chart holds {size:,} bytes of data; expected at most {MOST_BYTES:,}: bin or sample before")
    for name in ("config", "$schema"):
        spec.pop(name, None)
    return spec


def template_of(chart: Chart) -> dict[str, Any]:
    """The chart without its data, for pages that each bring rows of their own."""
    spec = spec_of(chart)
    names = list(spec.pop("datasets"))
    text = json.dumps(spec)
    for name in names:
        text = text.replace(f'"{name}"', '"rows"')
    found: dict[str, Any] = json.loads(text)
    return found


def themed(spec: Mapping[str, Any], scheme: Literal["light", "dark"] = "light") -> dict[str, Any]:
    """The chart with the colours of a scheme."""
    text = json.dumps(spec)
    for name, colour in PALETTE[scheme].items():
        text = text.replace(f'"@{name}"', f'"{colour}"')
    found: dict[str, Any] = json.loads(text)
    colours = PALETTE[scheme]
    words = {"labelColor": colours["ink"], "titleColor": colours["ink"]}
    found["config"] = {
        "background": colours["paper"],
        "font": "sans-serif",
        "view": {"stroke": None},
        "axis": {**words, "gridColor": colours["grid"], "domainColor": colours["muted"], "tickColor": colours["muted"]},
        "header": words,
        "legend": words,
        "title": {"color": colours["ink"]},
        "text": {"color": colours["ink"]},
    }
    return found


def to_png(spec: Mapping[str, Any], scale: float = 1.5) -> bytes:
    """The chart as an image in light colours, of a tenth of the bytes that vl-convert makes of it."""
    import vl_convert
    from PIL import Image

    drawn = bytes(vl_convert.vegalite_to_png(json.dumps(themed(spec)), scale=scale))
    found = io.BytesIO()
    image = Image.open(io.BytesIO(drawn)).convert("RGB")
    image.quantize(MOST_TONES).save(found, "PNG", optimize=True)
    return found.getvalue()


def tidy(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows as a chart holds them: times as milliseconds of UTC, numbers with five digits, the rest as text."""
    found: dict[str, Any] = {}
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
        found[str(name)] = values
    return pd.DataFrame(found)


def parts_of(frame: pd.DataFrame, key: str) -> tuple[list[str], dict[str, list[list[Any]]]]:
    """The columns of a frame but `key`, and by its values the rows, as a chart holds them; missing ones are None."""
    rows = tidy(frame.drop(columns=key))
    values = rows.astype(object).where(rows.notna(), None).to_numpy()
    places = frame.groupby(key, sort=False).indices
    return [str(name) for name in rows], {str(name): values[at].tolist() for name, at in places.items()}


def _position(channel: Any, axis: Axis, **more: Any) -> Any:
    """The encoding of an axis. channel: alt.X or alt.Y."""
    import altair as alt

    grid = more.pop("grid", True)
    if axis.kind == "name":
        return channel(f"{axis.field}:N", title=axis.title or None, sort=None, **more)
    if axis.kind == "time":
        scale, ticks = alt.Scale(type="utc", padding=8), alt.Axis(grid=grid, labelOverlap=True, format=TIMES)
        return channel(f"{axis.field}:T", title=axis.title, scale=scale, axis=ticks, **more)
    if axis.kind == "seconds":
        ticks = alt.Axis(values=list(SECONDS), labelExpr=SECOND_WORDS, grid=grid, labelOverlap=True)
        scale = alt.Scale(type="log", nice=False, padding=8)
    elif axis.kind == "log":
        ticks = alt.Axis(labelExpr=NUMBER_WORDS, grid=grid, labelOverlap=True)
        scale = alt.Scale(type="log", nice=False, padding=8)
    else:
        words = "format(datum.value, '.0%')" if axis.kind == "share" else NUMBER_WORDS
        ticks, starts_at_0 = alt.Axis(labelExpr=words, grid=grid, labelOverlap=True, tickCount=6), axis.kind != "number"
        scale = alt.Scale(zero=starts_at_0, nice=starts_at_0, padding=0 if starts_at_0 else 4)
    more.setdefault("scale", scale)
    return channel(f"{axis.field}:Q", title=axis.title, axis=ticks, **more)


def _colour(field: str, colours: Mapping[str, str]) -> Any:
    import altair as alt

    legend = alt.Legend(title=None, orient="top", columns=3, labelLimit=260) if len(colours) > 1 else None
    return alt.Color(f"{field}:N", scale=alt.Scale(domain=list(colours), range=list(colours.values())), legend=legend)


def _tips(frame: pd.DataFrame) -> list[Any]:
    """What is said of a mark under the mouse: all columns of its row."""
    import altair as alt

    return [
        alt.Tooltip(f"{name}:T", timeUnit="utcyearmonthdatehoursminutes", title=str(name).removesuffix("_at"))
        if str(name).endswith("_at")
        else alt.Tooltip(f"{name}:{'Q' if pd.api.types.is_numeric_dtype(frame[name]) else 'N'}", title=str(name))
        for name in frame
    ]


def _tone(field: str, colours: Mapping[str, str] | None) -> Any:
    """Colours by name; without any one colour for all."""
    import altair as alt

    return _colour(field, colours) if field and colours else alt.value(BLUE)


def _in_rows(row: str, *, grid: bool = False) -> dict[str, Any]:
    """The encoding of rows by their names, in the order of the frame."""
    import altair as alt

    return {"y": alt.Y(f"{row}:N", sort=None, title=None, axis=alt.Axis(labelLimit=220, grid=grid))}


def _rows_px(rows: pd.DataFrame, row: str, px: int = ROW_PX) -> int:
    """The height of a chart of named rows."""
    return max(60, px * rows[row].nunique())


def _layered(
    rows: pd.DataFrame, layers: Sequence[Any], height: Any, panel: str = "", *, is_shared: bool = False
) -> Any:
    """Layers over the same rows as one chart; panel: column of names, a row of charts each, in the order of the frame,
    each with its own y unless `is_shared`."""
    import altair as alt

    layered = alt.layer(*layers, data=rows).properties(width=WIDTH_PX, height=height)
    if not panel:
        return layered
    header = alt.Header(title=None, labelAnchor="start", labelOrient="top", labelFontWeight="bold", labelLimit=520)
    names = alt.Row(f"{panel}:N", sort=list(dict.fromkeys(rows[panel])), header=header)
    found = layered.facet(row=names, spacing=14)
    return found if is_shared else found.resolve_scale(y="independent")


def _rule(base: Any, at: Any) -> Any:
    """A dashed line at a place on x."""
    return base.mark_rule(color=ORANGE, strokeDash=[4, 3]).encode(x=at)


def _zoomable(chart: Any, encodings: Sequence[Literal["x", "y"]] = ("x", "y")) -> Chart:
    """The chart with axes that ctrl and the wheel widen, and that the mouse drags; the wheel alone turns the page."""
    import altair as alt

    zoom = "wheel![event.ctrlKey]"
    zoomable: Chart = chart.add_params(alt.selection_interval(bind="scales", encodings=list(encodings), zoom=zoom))
    return zoomable


def scatter(frame: pd.DataFrame, x: Axis, y: Axis, lines: Mapping[str, float]) -> Chart:
    """A mark a row. lines: words and how many times x they lie at y, on two axes alike."""
    import altair as alt

    rows, places = tidy(frame), {"x": _position(alt.X, x), "y": _position(alt.Y, y)}
    marks = alt.Chart(rows).mark_circle(size=34, opacity=0.65, color=BLUE)
    ends = [float(rows[x.field].min()), float(rows[x.field].max())]
    guides = pd.DataFrame([{"line": name, x.field: at, y.field: at * k} for name, k in lines.items() for at in ends])
    tones = _colour("line", dict(zip(lines, (MUTED, ORANGE), strict=False)))
    drawn = alt.Chart(guides).mark_line(strokeDash=[5, 3], strokeWidth=1.5)
    guided = drawn.encode(x=f"{x.field}:Q", y=f"{y.field}:Q", color=tones)
    layered = alt.layer(marks.encode(**places, tooltip=_tips(rows)), guided)
    return _zoomable(layered.properties(width=WIDTH_PX, height=TALL_PX))


def lines(
    frame: pd.DataFrame, x: Axis, y: Axis, *, series: str = "", rules: Mapping[str, float] | None = None,
    steps: bool = False, height: int = HEIGHT_PX,
) -> Chart:  # fmt: skip
    """A line a series, with points to hover; rules: words of vertical lines and where on x they stand."""
    import altair as alt

    rows = tidy(frame)
    names = dict.fromkeys(rows[series]) if series else ()
    tone = _tone(series, dict(zip(names, SERIES * 3, strict=False)))
    base = alt.Chart(rows).encode(x=_position(alt.X, x), y=_position(alt.Y, y), color=tone)
    layers = [base.mark_line(interpolate="step-after" if steps else "linear", strokeWidth=1.8)]
    if len(rows) <= MANY:
        layers.append(base.mark_circle(size=30).encode(tooltip=_tips(rows)))
    for words, at in (rules or {}).items():
        said = alt.Chart(rows.head(1)).mark_text(text=words, color=ORANGE, align="left", dx=4, y=8)
        layers += [_rule(alt.Chart(rows), alt.datum(at)), said.encode(x=alt.datum(at))]
    return _zoomable(_layered(rows, layers, height))


def intervals(
    frame: pd.DataFrame, value: Axis, row: str, *, tone: str = "", colours: Mapping[str, str] | None = None,
    panel: str = "",
) -> Chart:  # fmt: skip
    """A dot a row with its interval, columns low and high. tone: column of names by `colours`."""
    import altair as alt

    rows = tidy(frame)
    base = alt.Chart(rows).encode(color=_tone(tone, colours), **_in_rows(row))
    from_low = _position(alt.X, Axis("low", value.title, value.kind))
    bar = base.mark_rule(strokeWidth=3, opacity=0.45).encode(x=from_low, x2="high:Q")
    dot = base.mark_circle(size=70, opacity=1).encode(x=_position(alt.X, value), tooltip=_tips(rows))
    parts = [part for _, part in rows.groupby(panel)] if panel else [rows]
    found = _layered(rows, [bar, dot], max(_rows_px(part, row) for part in parts), panel)
    shown: Chart = found.resolve_scale(x="independent", y="independent") if panel else found
    return shown


def swarm(frame: pd.DataFrame, value: Axis, row: str, level: str) -> Chart:
    """A dot a mark in its row, spread upwards and downwards where they are many.

    level: column of 0 to 1 that colours from blue to orange."""
    import altair as alt

    golden = 0.6180339887498949
    rows = tidy(frame).assign(spread=[(at * golden) % 1 for at in range(len(frame))])
    scale = alt.Scale(range=[BLUE, GRID, ORANGE], domain=[0, 0.5, 1], interpolate="rgb")
    legend = alt.Legend(title="value of the feature, low to high", orient="top", values=[0, 1])
    marks = alt.Chart(rows).mark_circle(size=22, opacity=0.6).encode(
        x=_position(alt.X, value), yOffset=alt.YOffset("spread:Q", scale=alt.Scale(domain=[-0.6, 1.6])),
        color=alt.Color(f"{level}:Q", scale=scale, legend=legend), tooltip=_tips(rows.drop(columns="spread")),
        **_in_rows(row),
    )  # fmt: skip
    found: Chart = _layered(rows, [marks], _rows_px(rows, row, px=34))
    return found


def heatmap(frame: pd.DataFrame, row: Axis, column: Axis, share: str, *, most: int = 40) -> Chart:
    """Cells of shares in percent of their row, with their number; the frame holds one row a cell that has any."""
    import altair as alt

    rows = tidy(frame)
    n_rows, n_columns = rows[row.field].nunique(), rows[column.field].nunique()
    base = alt.Chart(rows).encode(
        x=alt.X(f"{column.field}:N", sort=None, title=column.title, axis=alt.Axis(orient="top", labelAngle=-40)),
        y=alt.Y(f"{row.field}:N", sort=None, title=row.title, axis=alt.Axis(labelLimit=200)),
        tooltip=_tips(rows),
    )
    scale = alt.Scale(domain=[0, 1], range=[PALE, BLUE])
    cells = base.mark_rect().encode(color=alt.Color(f"{share}:Q", scale=scale, legend=None))
    light = alt.condition(alt.datum[share] > 0.6, alt.value("@paper"), alt.value(INK))
    words = base.transform_filter(f"datum['{share}'] >= 0.005").mark_text(fontSize=10)
    words = words.encode(text=alt.Text(f"{share}:Q", format=".0%"), color=light)
    size = max(26, min(44, WIDTH_PX // max(n_columns, 1)))
    layered = alt.layer(*((cells, words) if max(n_rows, n_columns) <= most else (cells,)))
    return layered.properties(width=size * n_columns, height=max(24, size * 2 // 3) * n_rows)


def histogram(
    frame: pd.DataFrame, x: Axis, share: Axis, *, end: str = "end", panel: str = "", series: str = "",
    colours: Mapping[str, str] | None = None, rule: float | None = None, overlay: str = "", height: int = 90,
) -> Chart:  # fmt: skip
    """Bars from `x.field` to `end` of each bin; overlay: column of shares that a line shows above them."""
    import altair as alt

    rows = tidy(frame)
    base = alt.Chart(rows).encode(x=_position(alt.X, x, grid=False))
    floor = alt.datum(LEAST_SHARE if share.kind == "log" else 0)
    tall = {"y": _position(alt.Y, share, stack=None), "y2": floor, "color": _tone(series, colours)}
    layers = [base.mark_bar(opacity=0.75).encode(x2=f"{end}:Q", tooltip=_tips(rows), **tall)]
    if overlay:
        line = base.mark_line(interpolate="step-after", color=ORANGE, strokeWidth=2)
        layers.append(line.encode(y=f"{overlay}:Q"))
    if rule is not None:
        layers.append(_rule(alt.Chart(rows), alt.datum(rule)))
    found: Chart = _layered(rows, layers, height, panel, is_shared=True)
    return found


def strips(
    frame: pd.DataFrame, x: Axis, y: Axis, panel: str, *, level: str, change: str = "", colour: str = "",
    colours: Mapping[str, str] | None = None,
) -> Chart:  # fmt: skip
    """A strip a panel with an axis of its own: points over x. level: column of a line; change: column of places on x
    with a dashed line; colour: column of names by `colours`."""
    import altair as alt

    rows = tidy(frame)
    base, at = alt.Chart(rows), _position(alt.X, x, grid=False)
    there = {"x": at, "y": _position(alt.Y, y), "color": _tone(colour, colours)}
    layers: list[Any] = []
    if change:
        layers.append(_rule(base, f"{change}:{at.shorthand[-1]}"))
    line = base.mark_line(color=MUTED, strokeWidth=1.4, interpolate="step-after")
    layers.append(line.encode(x=at, y=f"{level}:Q"))
    layers.append(base.mark_circle(size=16, opacity=0.8).encode(tooltip=_tips(rows), **there))
    found: Chart = _layered(rows, layers, 84, panel)
    return found


def fan(rows: pd.DataFrame, tones: Mapping[str, str], *, is_next: bool = False, height: int = 300) -> Chart:
    """What was predicted and what came. rows: submitted_at, runtime_s (missing for a run to come), is (one of `tones`),
    and p05_s, p25_s, p50_s, p75_s, p95_s (missing where nothing was predicted); is_next: of the next run alone, drawn
    as a bar in place of a band."""
    import altair as alt

    found = tidy(rows)
    base, x = alt.Chart(found), _position(alt.X, Axis("submitted_at", "submitted (UTC)", "time"))

    def y(field: str) -> Any:
        return _position(alt.Y, Axis(field, "runtime", "seconds"))

    said = base.transform_filter("isValid(datum.p50_s)")
    band: dict[str, Any] = {"strokeWidth": 9} if is_next else {"interpolate": "step", "opacity": 0.75}
    draw: Any = said.mark_rule if is_next else said.mark_area
    middle: Any = said.mark_tick(size=16, thickness=3, color=INK) if is_next else said.mark_line(
        color=BLUE, interpolate="step", strokeWidth=1.6)  # fmt: skip
    came = base.transform_filter("isValid(datum.runtime_s)").mark_circle(size=28, opacity=0.85)
    layers = [
        draw(color=PALE, **band).encode(x=x, y=y("p05_s"), y2="p95_s:Q"),
        draw(color=MIDDLE, **band).encode(x=x, y=y("p25_s"), y2="p75_s:Q"),
        middle.encode(x=x, y=y("p50_s")),
        came.encode(x=x, y=y("runtime_s"), color=_colour("is", tones), tooltip=_tips(found)),
    ]
    return _zoomable(_layered(found, layers, height))


def spans(
    frame: pd.DataFrame, x: Axis, row: str, *, end: str = "end", level: str = "", colour: str = "",
    colours: Mapping[str, str] | None = None, panel: str = "", row_px: int = 20,
) -> Chart:  # fmt: skip
    """Bars from x to `end` in the row that each is of. level: column of deviations, blue below and orange above,
    stronger up to REACH; colour: column of names by `colours`."""
    import altair as alt

    rows, tone = tidy(frame), _tone(colour, colours)
    if level:
        scale = alt.Scale(domain=[-REACH, 0, REACH], range=[BLUE, "@paper", ORANGE], clamp=True, interpolate="rgb")
        legend = alt.Legend(title="deviations from the usual", orient="top")
        tone = alt.Color(f"{level}:Q", scale=scale, legend=legend)
    marks = alt.Chart(rows).mark_bar(height={"band": 0.8}).encode(
        x=_position(alt.X, x, grid=False), x2=f"{end}:Q", color=tone, tooltip=_tips(rows), **_in_rows(row)
    )  # fmt: skip
    found = _layered(rows, [marks], max(40, row_px * rows[row].nunique()), panel, is_shared=True)
    shown: Chart = found.resolve_scale(x="independent") if panel else found
    return shown


def timeline(frame: pd.DataFrame, x: Axis, row: str, colour: str, colours: Mapping[str, str], strength: str) -> Chart:
    """A mark a happening in its row over time, stronger in colour by `strength` (0 to 1). colour: column of names."""
    import altair as alt

    rows = tidy(frame)
    opacity = alt.Opacity(f"{strength}:Q", scale=alt.Scale(domain=[0, 1], range=[0.25, 1]), legend=None)
    marks = alt.Chart(rows).mark_circle(size=70).encode(
        x=_position(alt.X, x), color=_colour(colour, colours), opacity=opacity, tooltip=_tips(rows),
        **_in_rows(row, grid=True),
    )  # fmt: skip
    return _zoomable(_layered(rows, [marks], alt.Step(ROW_PX)), ["x"])


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
    found = [
        {of: rows[i], to: columns[j], "share": float(shares[i, j]), what: int(counts[i, j])}
        for i, j in np.ndindex(*counts.shape)
        if counts[i].sum()
    ]
    return pd.DataFrame(found, columns=[of, to, "share", what])
