"""The forms that Prefect draws: complete, and safe to override in part."""

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from flows.engine.deploying import (
    DeploymentEntry,
    read_deployments,
)
from flows.engine.forms import (
    bounds_of,
    first_parameters,
    form_of,
    resolved_parameters,
    title_of,
    with_source,
)
from flows.parameters import EvaluateFlowParams, FingerprintFlowParams, IngestParams, SummaryFlowParams, WatchFlowParams
from tasks.errors import BadSetting, NotFound
from tasks.params import Params
from tasks.settings import Settings
from tasks.warehouse.place import Warehouse

ENTRIES = read_deployments()


@cache
def drawn(name: str) -> dict[str, Any]:
    """The form of a deployment: most of the time goes into making it."""
    [entry] = [entry for entry in ENTRIES if entry.name == name]
    return form_of(entry.load_flow())


def schema_of(entry: DeploymentEntry) -> dict[str, Any]:
    return deepcopy(drawn(entry.name))


def filled_in(entry: DeploymentEntry) -> set[str]:
    flow = entry.load_flow()
    names = list(flow.parameters.properties)
    return set(first_parameters(Settings(), flow.name, names)) | set(resolved_parameters(Settings(), flow.name, names))


def fields_of(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every field of the form by its dotted place; a field that is a group carries the words of its model."""
    definitions = schema.get("definitions", {})
    found = dict(schema["properties"])
    for name, model in definitions.items():
        found |= {f"{name}.{key}": field for key, field in model.get("properties", {}).items()}
    for field in found.values():
        group = field.get("$ref", "").rsplit("/", 1)[-1]
        field.setdefault("description", definitions.get(group, {}).get("description"))
    return found


def filled_in_by_a_person(schema: dict[str, Any]) -> set[str]:
    """The fields of what a list holds: those that are there have values, and a new one is a person's own."""
    lists = [field["items"] for field in fields_of(schema).values() if "$ref" in field.get("items", {})]
    names = {items["$ref"].rsplit("/", 1)[-1] for items in lists}
    return {place for place in fields_of(schema) if place.partition(".")[0] in names}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_field_of_a_form_says_what_it_is(entry: DeploymentEntry) -> None:
    assert [place for place, field in fields_of(schema_of(entry)).items() if not field.get("description")] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_field_of_a_form_shows_a_value(entry: DeploymentEntry) -> None:
    required_by_design = {"Warehouse.home"}  # the deployment fills in the whole warehouse
    schema = schema_of(entry)
    empty = {place for place, field in fields_of(schema).items() if "default" not in field}
    assert empty - filled_in(entry) - required_by_design - filled_in_by_a_person(schema) == set()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_number_in_a_form_has_bounds(entry: DeploymentEntry) -> None:
    lower, upper = {"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}
    numbers = {k: v for k, v in fields_of(schema_of(entry)).items() if v.get("type") in ("integer", "number")}
    assert [place for place, field in numbers.items() if not lower & set(field) or not upper & set(field)] == []


def test_overriding_the_paths_of_an_ingest_leaves_warehouse_and_settings_alone() -> None:
    [ingest] = [entry for entry in ENTRIES if entry.name == "jobs-ingest"]
    assert {"paths", "source", "reader", "read", "warehouse"} <= set(schema_of(ingest)["properties"])


@pytest.mark.parametrize("params", [IngestParams, SummaryFlowParams, WatchFlowParams])
def test_a_source_that_cannot_be_one_is_refused_by_every_flow(params: type[Params], tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"source ' main': not a name that everyone can type; expected 1 to 100"):
        params(source=" main", warehouse=Warehouse(home=tmp_path))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_what_asks_about_a_source_takes_the_only_one_and_what_keeps_rows_has_a_name_for_them(
    entry: DeploymentEntry,
) -> None:
    source = schema_of(entry)["properties"].get("source")
    keeps = entry.name.endswith(("-ingest", "-record"))
    assert source is None or source["default"] == ("main" if keeps else "")


def test_a_form_without_a_source_takes_the_only_one_of_its_word(job_log: Callable[..., Warehouse]) -> None:
    warehouse = job_log([{"group_key": "once#cccccccc", "runtime_s": 5.0}], source="recorded")
    assert with_source("jobs", SummaryFlowParams(warehouse=warehouse)).source == "recorded"
    assert with_source("jobs", SummaryFlowParams(source="mine", warehouse=warehouse)).source == "mine"
    with pytest.raises(NotFound, match="no telemetry yet; read some with 'whorl workloads ingest PATH'"):
        with_source("workloads", FingerprintFlowParams(warehouse=warehouse))
    job_log([{"group_key": "once#dddddddd", "runtime_s": 5.0}], source="slurm")
    several = "there are 2 sources: recorded, slurm; choose one with --source, or in the field source of a form"
    with pytest.raises(NotFound, match=several):
        with_source("jobs", SummaryFlowParams(warehouse=warehouse))
    from_files = EvaluateFlowParams(logs=["a.csv"], warehouse=warehouse)
    assert with_source("jobs", from_files) == from_files


def test_the_form_names_every_reader() -> None:
    from tasks.jobs.readers import READERS

    [ingest] = [entry for entry in ENTRIES if entry.name == "jobs-ingest"]
    assert schema_of(ingest)["properties"]["reader"]["enum"] == ["auto", *READERS]


def test_a_deployment_shows_the_settings_that_will_run() -> None:
    settings = Settings.model_validate({"whorl": {"threads": 7}, "jobs": {"read": {"time_zone": "Europe/Berlin"}}})
    found = resolved_parameters(settings, "jobs-ingest", ["paths", "read", "warehouse"])
    assert found["read"]["time_zone"] == "Europe/Berlin"
    assert found["warehouse"]["threads"] == 7
    assert found["warehouse"]["home"].endswith("/data")
    assert "paths" not in found


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("lock_wait_s", "Lock wait (s)"),
        ("memory_mb", "Memory (MB)"),
        ("flow_runs_kept_days", "Flow runs kept (days)"),
        ("paths", "Paths"),
        ("prefect_api", "Prefect API"),
        ("minutes", "Minutes"),
        ("with_summary", "With summary"),
        ("n_rows", "Number of rows"),
        ("min_support", "Minimum support"),
        ("max_line_bytes", "Maximum line (bytes)"),
        ("max_bytes", "Maximum size (bytes)"),
        ("max_ratio", "Maximum ratio"),
        ("sacct_fields", "sacct fields"),
    ],
)
def test_titles_are_words_with_units(name: str, title: str) -> None:
    assert title_of(name) == title


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_no_text_of_a_form_is_taken_for_html(entry: DeploymentEntry) -> None:
    fields = fields_of(schema_of(entry))
    assert [place for place, field in fields.items() if "<" in str(field.get("description"))] == []
    assert [place for place, field in fields.items() if not field.get("title")] == []


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"minimum": 1, "maximum": 200}, "1 to 200"),
        ({"exclusiveMinimum": 0, "maximum": 3600.0}, "above 0, up to 3,600"),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, "above 0, below 1"),
        ({"minimum": 2}, "2 or more"),
        ({"maximum": 2}, "up to 2"),
        ({"minimum": 0, "maximum": 1e9}, "0 to 1,000,000,000"),
        ({"minimum": 1024, "maximum": 2**50}, "1,024 to 2^50"),
        ({"minLength": 1, "maxLength": 100}, "1 to 100 characters"),
        ({"minItems": 1}, "1 or more entries"),
        ({"maxItems": 100}, "up to 100 entries"),
        ({"minimum": 0, "maximum": 5e12}, "0 to 5e+12"),
        ({"type": "string"}, ""),
    ],
)
def test_bounds_are_words(field: dict[str, Any], words: str) -> None:
    assert bounds_of(field) == words


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_bound_of_a_form_can_be_read_before_it_is_broken(entry: DeploymentEntry) -> None:
    bounded = {place: field for place, field in fields_of(schema_of(entry)).items() if bounds_of(field)}
    assert bounded
    told = {place: f"; allowed: {bounds_of(field)}" for place, field in bounded.items()}
    assert [place for place, field in bounded.items() if not field["description"].endswith(told[place])] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_texts_of_a_form_are_no_sentences(entry: DeploymentEntry) -> None:
    assert [k for k, field in fields_of(schema_of(entry)).items() if str(field["description"]).endswith(".")] == []


def test_the_long_lists_of_words_come_last_in_the_form_of_an_ingest() -> None:
    [ingest] = [entry for entry in ENTRIES if entry.name == "jobs-ingest"]
    assert list(schema_of(ingest)["properties"])[-2:] == ["warehouse", "group"]
