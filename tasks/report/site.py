"""The site of a home: an index with the verdict of each word, a page a word and source, and a page an item.

Every flow that changes what a page shows writes that page and the index anew; `whorl report` writes all of it."""

import json
import logging
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from tasks.errors import NotFound
from tasks.jobs.params import ReportParams
from tasks.params import Params
from tasks.quantities import MISSING
from tasks.report import charts
from tasks.report.intake import ALARM_ITEM
from tasks.report.page import data_block, describe, file_slug, page_text, write_assets, write_result, write_text
from tasks.report.result import Result, Section, count, item_href, moment, one_line, records, sentence, table
from tasks.storage import narrow, private
from tasks.warehouse.connection import Connection, logs_of, reading
from tasks.warehouse.place import Warehouse
from tasks.workloads.params import WorkloadsReportParams

logger = logging.getLogger(__name__)
WORDS = ("jobs", "workloads", "nodes", "advice")
TITLES = {"jobs": "Jobs", "workloads": "Workloads", "nodes": "Nodes", "advice": "Advice"}
ITEMS = {"jobs": "job", "workloads": "workload", "nodes": "node"}
QUESTIONS = {
    "jobs": ("How will the next runs of recurring jobs vary?", "whorl jobs ingest PATH"),
    "workloads": ("What is running on these machines?", "whorl workloads ingest PATH"),
    "nodes": ("How good is each node, and is it degrading?", "whorl nodes ingest PATH"),
    "advice": ("Which machines should a job use?", "whorl advice choose --help"),
}
DATA, VERDICTS, NAMES = "data", "data/verdicts", "names.js"
MOST_ITEMS, A_PART, MOST_PARTS = 20_000, 40, 500
ALARM_DAYS, MOST_ALARMS = 7, 200
FNV_START, FNV_PRIME, BITS = 0x811C9DC5, 0x01000193, 0xFFFFFFFF
SOURCES = """
SELECT word, source, count(*) AS n_files, max(landed_at) AS read_at, sum(n_kept) AS n_kept
FROM ops.files WHERE word IN ('jobs', 'workloads', 'nodes') GROUP BY ALL ORDER BY word, source
"""
LATEST = """
SELECT 'jobs' AS word, source, max(coalesce(submitted_at, started_at, ended_at)) AS latest_at FROM jobs.runs GROUP BY
ALL UNION ALL SELECT 'workloads', source, max(started_at) FROM workloads.runs GROUP BY ALL
UNION ALL SELECT 'nodes', source, max(started_at) FROM nodes.executions GROUP BY ALL
"""
WATCHED = """
SELECT word, source, max(ended_at) AS watched_at FROM ops.runs WHERE flow LIKE '%-watch' AND status = 'completed'
GROUP BY ALL
"""
ALARMS = """
SELECT word, source, kind, subject, message, raised_at, {item} AS item
FROM ops.alarms WHERE raised_at >= (SELECT max(raised_at) FROM ops.alarms) - to_days($days)
ORDER BY raised_at DESC, alarm_id LIMIT $most
"""
# What each word needs, in the order in which it is made: the question of whether it is there, and the data version that
# it was made from where somebody kept it.
MODEL = """
SELECT arg_max(models.data_version, sequence) FROM ops.champions AS used JOIN ops.models AS models USING (model_id)
WHERE used.word = '{word}' AND used.source = $source HAVING count(*) > 0
"""
VERSION = "SELECT any_value(data_version) FROM {table} WHERE source = $source HAVING count(*) > 0"
ANY = "SELECT NULL FROM {table} WHERE source = $source LIMIT 1"
NEEDS = {
    "jobs": (
        ("summary", VERSION.format(table="jobs.summaries"), "summary"),
        ("typical distributions", VERSION.format(table="jobs.shapes"), "characterise"),
        ("model", MODEL.format(word="jobs"), "train"),
        ("predictions", VERSION.format(table="jobs.predictions"), "predict"),
    ),
    "workloads": (
        ("phases", ANY.format(table="workloads.run_phases"), "fingerprint"),
        ("model", MODEL.format(word="workloads"), "train"),
        ("identifications", ANY.format(table="workloads.identifications"), "identify"),
    ),
    "nodes": (
        ("ranking", VERSION.format(table="nodes.rankings"), "rank"),
        ("verdicts", VERSION.format(table="nodes.judgings"), "fingerprint"),
        ("states", ANY.format(table="nodes.states"), "watch"),
    ),
}


class SiteParams(Params):
    """What pages show, by word."""

    jobs: ReportParams = ReportParams()
    workloads: WorkloadsReportParams = WorkloadsReportParams()


DEFAULTS = SiteParams()


def reports(warehouse: Warehouse) -> Path:
    """The folder of the site, made if need be: pages name jobs, users and nodes, so it is for the owner of the home."""
    folder = warehouse.home / "reports"
    with private():
        folder.mkdir(parents=True, exist_ok=True)
    narrow(folder)
    return folder


def _name(word: str, source: str) -> str:
    """What the files of a source begin with."""
    return file_slug(f"{word}-{source}")


def page_name(word: str, source: str) -> str:
    """The file of the page of a source."""
    return f"{_name(word, source)}.html"


def item_address(word: str, source: str, key: str = "") -> str:
    """Where the page of a job, workload or node is, relative to the site."""
    page = f"{_name(word, source)}-{ITEMS[word]}.html"
    return item_href(page, key) if key else page


def alarm_address(word: str, source: str, item: Any) -> str:
    """Where the page of the job, workload or node is that an alarm is of; of the source where nobody says of which."""
    known = isinstance(item, str) and word in ITEMS
    return item_address(word, source, item) if known else f"{page_name(word, source)}#alarms"


def write_site(warehouse: Warehouse, params: SiteParams = DEFAULTS) -> Path:
    """Write all pages of all sources, and the index; returns its path. A source that has nothing to show is left
    out."""
    with reading(warehouse) as connection:
        sources = connection.execute(SOURCES).df()
    for word, source in sources[["word", "source"]].itertuples(index=False):
        try:
            _write_source(warehouse, str(word), str(source), params)
        except NotFound as error:
            logger.info("no page of %s %s: %s", word, source, error)
            _remove(reports(warehouse), reports(warehouse) / VERDICTS / f"{_name(word, source)}.json")
    return write_index(warehouse)


def write_source(warehouse: Warehouse, word: str, source: str, params: SiteParams = DEFAULTS) -> Path:
    """Write the page of a source and those of its items, and the index; returns the path of the first.

    Raises NotFound if the source has nothing to show, BadInput if it mixes simulated with measured rows."""
    with reading(warehouse):  # kept open for both: opening it costs 20 ms of CPU
        path = _write_source(warehouse, word, source, params)
        write_index(warehouse)
    return path


def result_of(
    connection: Connection, word: str, source: str, params: SiteParams, item: str = ""
) -> tuple[Result, Iterator[tuple[str, Result]]]:
    """What is known of a source, and its items one by one. item: address of their page."""
    of = import_module(f"tasks.report.{word}")  # of the three only the one that is shown: each takes a second to import
    data = getattr(of, f"fetch_{word}")(connection, source, *([getattr(params, word)] if hasattr(params, word) else []))
    return getattr(of, f"{word}_result")(data, item), getattr(of, f"{ITEMS[word]}_items")(connection, data)


_latest: tuple[Any, Result] | None = None  # what this process wrote last, and of which rows


def read_result(warehouse: Warehouse, word: str, source: str, params: SiteParams) -> Result:
    """What is known of a source: as its page has it, where this process has just written that; else read anew."""
    if _latest and _latest[0] == _rows_of(warehouse, word, source, params):
        return _latest[1]
    with reading(warehouse) as connection:
        return result_of(connection, word, source, params, item_address(word, source))[0]


def _rows_of(warehouse: Warehouse, *of: Any) -> Any:
    states = [(file, file.stat()) for file in (warehouse.file, *logs_of(warehouse.file)) if file.exists()]
    return of, [(file, state.st_mtime_ns, state.st_size) for file, state in states]


def _write_source(warehouse: Warehouse, word: str, source: str, params: SiteParams) -> Path:
    global _latest  # of which rows it is says the files' state
    folder, item = reports(warehouse), item_address(word, source)
    with reading(warehouse) as connection:
        result, items = result_of(connection, word, source, params, item)
        _latest = _rows_of(warehouse, word, source, params), result
        described = []
        for key, item_result in items:
            description = describe(item_result)
            described.append((key, {part: description[part] for part in PARTS_OF_ITEMS if description[part]}))
    path = write_result(folder, f"{word}-{source}", result)
    _keep(folder, word, source, result, [path, *_write_items(folder, word, source, described)])
    logger.info("wrote %s", path)
    return path


PARTS_OF_ITEMS = ("title", "answer", "certainty", "action", "state", "reasons", "facts", "sections")
ITEM_CHARTS = {"jobs": "history", "workloads": "runs", "nodes": "verdicts"}


def _write_items(
    folder: Path, word: str, source: str, items: Sequence[tuple[str, Mapping[str, Any]]]
) -> Iterator[Path]:
    """The page of the items of a source, which reads its part by the name of the item; a file can load scripts
    alone."""
    shown, n_parts = items[:MOST_ITEMS], min(MOST_PARTS, max(1, len(items) // A_PART))
    name, draw = ITEM_CHARTS[word], import_module(f"tasks.report.{word}").item_chart
    cut = f" The first {MOST_ITEMS:,} of {len(items):,} have a page." if len(items) > MOST_ITEMS else ""
    again = shlex.join(["whorl", "report", word, "--source", source])
    description = describe(Result(f"{TITLES[word]}: {source}", "", made_of=f"source {source}", again=again)) | {
        "nothing": f"No {ITEMS[word]} of this name stands in this report.{cut}",
        "parts": n_parts,
        "specs": {name: charts.template_of(draw())} if items else {},
    }
    page = item_address(word, source)
    place = f"{DATA}/{_name(word, source)}"
    yield write_text(folder / page, page_text(description, kind="item", parts=place))
    names = data_block([key for key, _ in shown])
    yield write_text(folder / place / NAMES, f"whorlNames({data_block(page)},{names});\n")
    by_part: dict[int, dict[str, Any]] = {}
    for key, content in shown:
        by_part.setdefault(part_of(key, n_parts), {})[key] = content
    for number, part in by_part.items():
        yield write_text(folder / place / f"{number}.js", f"whorlPart({number},{data_block(part)});\n")


def part_of(key: str, n_parts: int) -> int:
    """Which part an item stands in: FNV-1a over its name, as site.js asks."""
    hashed = FNV_START
    for byte in key.encode():
        hashed = ((hashed ^ byte) * FNV_PRIME) & BITS
    return hashed % n_parts


def _keep(folder: Path, word: str, source: str, result: Result, pages: Sequence[Path]) -> None:
    """Keep what the index says of a result, and which files are its pages, the first of which it leads to. Those that
    it had before and has no more are removed."""
    path, files = folder / VERDICTS / f"{_name(word, source)}.json", [str(page.relative_to(folder)) for page in pages]
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for gone in set(_files(old)) - set(files):
        (folder / gone).unlink(missing_ok=True)
    has_changed = "answer" in old and old["answer"] != result.answer
    fact = result.facts[0] if result.facts else None
    verdict = {
        **{"word": word, "source": source, "title": result.title, "href": files[0], "state": result.state},
        **{"answer": result.answer, "certainty": result.certainty, "action": result.action},
        "fact": {"key": fact.key, "text": fact.text, "words": fact.words} if fact else None,
        "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": files,
        "before": {key: old[key] for key in ("answer", "written_at")} if has_changed else old.get("before"),
    }
    write_text(path, json.dumps(verdict, ensure_ascii=False))


def _files(verdict: Mapping[str, Any]) -> list[str]:
    """The pages that were written beside a verdict, relative to the site; names that lead out of it are none."""
    names = map(str, verdict.get("files", [verdict["href"]] if "href" in verdict else []))
    return [name for name in names if not Path(name).is_absolute() and ".." not in Path(name).parts]


def _remove(folder: Path, verdict: Path) -> None:
    """Remove a verdict and the pages beside it; nothing that was not written with it."""
    if verdict.exists():
        for name in _files(json.loads(verdict.read_text(encoding="utf-8"))):
            (folder / name).unlink(missing_ok=True)
        verdict.unlink()


def write_advice(warehouse: Warehouse, name: str, result: Result) -> Path:
    """Write the page of an answer of advice as part of the site, and the index where there is a warehouse."""
    folder = reports(warehouse)
    path = write_result(folder, name, result)
    _keep(folder, "advice", name.removeprefix("advice-"), result, [path])
    if warehouse.file.exists():
        write_index(warehouse)
    return path


def write_index(warehouse: Warehouse) -> Path:
    """Write index.html: four verdicts, the alarms of the last days, what is missing, and how fresh each source is."""
    folder = reports(warehouse)
    with reading(warehouse) as connection:
        sources = connection.execute(SOURCES).df()
        freshness = _freshness(connection, sources)
        missing = _missing(connection, sources)
        alarms = connection.execute(ALARMS.format(item=ALARM_ITEM), {"days": ALARM_DAYS, "most": MOST_ALARMS}).df()
    verdicts = _verdicts(
        folder, {(str(word), str(source)) for word, source in zip(sources["word"], sources["source"], strict=True)}
    )
    cards = [_card(word, [verdict for verdict in verdicts if verdict["word"] == word]) for word in WORDS]
    looked = [word for word, card in zip(WORDS, cards, strict=True) if card["state"] == "look"]
    result = Result(
        "whorl",
        f"Look at {' and '.join(looked)}." if looked else "Nothing needs looking at.",
        made_of=f"{len(sources)} sources in {warehouse.home.name}",
        again="whorl report",
        sections=(_alarms_section(alarms), missing, _sources_section(verdicts), freshness),
        state="look" if looked else "good",
    )
    write_assets(folder)
    links = [
        {"title": "Overview", "href": "index.html"},
        *({"title": _link_title(verdict, verdicts), "href": verdict["href"]} for verdict in verdicts),
    ]
    items = [name for verdict in verdicts for name in _files(verdict) if name.endswith(f"/{NAMES}")]
    nav = f"window.whorlNav={data_block(links)};\nwindow.whorlItems={data_block(items)};\n"
    write_text(folder / "assets" / "nav.js", nav)
    return write_text(folder / "index.html", page_text(describe(result) | {"cards": cards}, kind="index"))


def _verdicts(folder: Path, known: set[tuple[str, str]]) -> list[dict[str, Any]]:
    """The verdicts of sources that are still there, and of all advice whose page is, by word, the latest of each first;
    the pages of the others are removed."""
    verdicts = []
    for path in (folder / VERDICTS).glob("*.json"):
        verdict = json.loads(path.read_text(encoding="utf-8"))
        is_advice = verdict["word"] == "advice"
        if (folder / verdict["href"]).exists() if is_advice else (verdict["word"], verdict["source"]) in known:
            verdicts.append(verdict)
        else:
            _remove(folder, path)
    verdicts.sort(key=lambda verdict: verdict["written_at"], reverse=True)
    return sorted(verdicts, key=lambda verdict: WORDS.index(verdict["word"]))


def _link_title(verdict: Mapping[str, Any], verdicts: Sequence[Mapping[str, Any]]) -> str:
    is_alone = sum(other["word"] == verdict["word"] for other in verdicts) == 1
    return TITLES[verdict["word"]] if is_alone else f"{TITLES[verdict['word']]}: {one_line(verdict['source'], 24)}"


def _card(word: str, verdicts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    question, verb = QUESTIONS[word]
    if not verdicts:
        nothing = {"answer": "Nothing is known yet.", "action": f"Begin with: `{verb}`", "state": "unknown"}
        return {"title": f"{TITLES[word]} · {question}", "href": "", "certainty": "", "fact": None, **nothing}
    first = next((verdict for verdict in verdicts if verdict["state"] == "look"), verdicts[0])
    return {key: first[key] for key in ("href", "state", "answer", "certainty", "action", "fact")} | {
        "title": f"{TITLES[word]} · {question}"
    }


def _alarms_section(alarms: pd.DataFrame) -> Section:
    rows = [row | {"message.href": alarm_address(row["word"], row["source"], row["item"])} for row in records(alarms)]
    shown = table(
        rows, ("message", "what happened", sentence), ("word", "word"), ("source", "source"), ("kind", "kind"),
        ("raised_at", "raised (UTC)", moment), name="alarms",
    )  # fmt: skip
    words = f"Of the {ALARM_DAYS} days up to the latest alarm."
    nothing = "No alarm was raised: whorl jobs watch, whorl workloads watch and whorl nodes watch look for some."
    return Section("Latest alarms", words, tables=(shown,), nothing=nothing, is_open=bool(rows))


def _missing(connection: Connection, sources: pd.DataFrame) -> Section:
    """What a source lacks, or has of older data, with the command that makes it."""
    from tasks.warehouse.sources import data_version

    rows = []
    for word, source in sources[["word", "source"]].itertuples(index=False):
        now = data_version(connection, word, source)
        for what, sql, verb in NEEDS[word]:
            latest = connection.execute(sql, {"source": source}).fetchone()
            state = "missing" if latest is None else "of older data" if latest[0] not in (None, now) else ""
            if state:
                command = shlex.join(["whorl", word, verb, "--source", source])
                rows.append({"word": word, "source": source, "what": what, "state": state, "command": command})
    shown = table(rows, *((key, key) for key in ("what", "state", "word", "source")), ("command", "made by"))
    words = "" if rows else "Nothing: all answers are of the files of now."
    return Section("What is missing or stale", words, tables=(shown,), is_open=bool(rows))


def _freshness(connection: Connection, sources: pd.DataFrame) -> Section:
    rows = sources.merge(connection.execute(LATEST).df(), on=["word", "source"], how="left")
    rows = rows.merge(connection.execute(WATCHED).df(), on=["word", "source"], how="left")
    shown = table(
        records(rows), ("word", "word"), ("source", "source"), ("n_files", "files", count), ("n_kept", "rows", count),
        ("read_at", "last read (UTC)", moment), ("latest_at", "latest in it (UTC)", moment),
        ("watched_at", "last watched (UTC)", moment),
    )  # fmt: skip
    return Section("How fresh each source is", tables=(shown,), nothing="No source yet.", is_open=True)


def _sources_section(verdicts: Sequence[Mapping[str, Any]]) -> Section:
    rows = []
    for verdict in verdicts:
        before = verdict.get("before") or {"answer": MISSING, "written_at": MISSING}
        changed = {"title.href": verdict["href"], "before": before["answer"], "until": _minute(before["written_at"])}
        rows.append(dict(verdict) | changed | {"written": _minute(verdict["written_at"])})
    shown = table(
        rows, ("title", "page"), ("answer", "says"), ("written", "written (UTC)"), ("before", "said before"),
        ("until", "last on (UTC)"),
    )  # fmt: skip
    return Section("All pages, and what changed", tables=(shown,), nothing="None yet.")


def _minute(written_at: str) -> str:
    return written_at[:16].replace("T", " ")
