"""The forms that Prefect draws: complete, and safe to override in part."""

from typing import Any

import pytest

from flows.deployment_file import DeploymentEntry, read_deployments
from flows.form_words import form_of, title_of
from flows.resolved import first_parameters, resolved_parameters
from tasks.settings import Settings

ENTRIES = read_deployments()


def schema_of(entry: DeploymentEntry) -> dict[str, Any]:
    return form_of(entry.load_flow())


def filled_in(entry: DeploymentEntry) -> set[str]:
    flow = entry.load_flow()
    names = list(flow.parameters.properties)
    return set(first_parameters(Settings(), names)) | set(resolved_parameters(Settings(), flow.name, names))


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


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_field_of_a_form_says_what_it_is(entry: DeploymentEntry) -> None:
    assert [place for place, field in fields_of(schema_of(entry)).items() if not field.get("description")] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_field_of_a_form_shows_a_value(entry: DeploymentEntry) -> None:
    required_by_design = {"Warehouse.home"}  # the deployment fills in the whole warehouse
    empty = {place for place, field in fields_of(schema_of(entry)).items() if "default" not in field}
    assert empty - filled_in(entry) - required_by_design == set()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_number_in_a_form_has_bounds(entry: DeploymentEntry) -> None:
    lower, upper = {"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}
    numbers = {k: v for k, v in fields_of(schema_of(entry)).items() if v.get("type") in ("integer", "number")}
    assert [place for place, field in numbers.items() if not lower & set(field) or not upper & set(field)] == []


def test_overriding_the_paths_of_an_ingest_leaves_warehouse_and_settings_alone() -> None:
    [ingest] = [entry for entry in ENTRIES if entry.name == "jobs-ingest"]
    assert {"paths", "source", "reader", "read", "warehouse"} <= set(schema_of(ingest)["properties"])


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
    ],
)
def test_titles_are_words_with_units(name: str, title: str) -> None:
    assert title_of(name) == title


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_no_text_of_a_form_is_taken_for_html(entry: DeploymentEntry) -> None:
    fields = fields_of(schema_of(entry))
    assert [place for place, field in fields.items() if "<" in str(field.get("description"))] == []
    assert [place for place, field in fields.items() if not field.get("title")] == []
