"""Flows with one parameter model: their forms, and their runs as people find them again."""

import logging
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectHTTPStatusError

from flows.engine import forms
from flows.engine.deploying import DeploymentEntry, read_deployments
from flows.engine.forms import (
    OneLine,
    bounds_of,
    first_parameters,
    form_fields,
    form_of,
    from_form,
    model_of,
    resolved_parameters,
    show_errors_in_one_line,
    show_steps,
    title_of,
    with_source,
)
from flows.jobs import EvaluateFlowParams, IngestParams, SummaryFlowParams, WatchFlowParams
from flows.workloads import FingerprintFlowParams
from tasks.errors import BadInput, BadSetting, NotFound, WarehouseBroken, WarehouseBusy, WhorlError
from tasks.jobs.params import ReadParams
from tasks.params import Params
from tasks.settings import Settings
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import known_sources

BUSY = WarehouseBusy("process 7 holds the lock")


def failing(error: WhorlError) -> Callable[..., Any]:
    def fail(*_: Any) -> Any:
        raise error

    return fail


@pytest.fixture
def params(warehouse: Warehouse) -> SummaryFlowParams:
    warehouse.home.mkdir()
    warehouse.file.touch()
    return SummaryFlowParams(warehouse=warehouse)


@pytest.mark.parametrize("error", [BUSY, WarehouseBroken("a newer schema")], ids=["busy", "broken"])
def test_an_error_of_the_warehouse_is_told_once(
    params: SummaryFlowParams, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: WhorlError
) -> None:
    monkeypatch.setattr(forms, "record_run", failing(error))
    with pytest.raises(type(error)), caplog.at_level(logging.WARNING):
        forms.kept("jobs-summary", params, failing(error))
    assert caplog.messages == []


def test_another_error_than_that_of_the_work_is_a_warning(
    params: SummaryFlowParams, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(forms, "record_run", failing(BUSY))
    with pytest.raises(BadInput), caplog.at_level(logging.WARNING):
        forms.kept("jobs-summary", params, failing(BadInput("a.csv", "is no log", "a job log")))
    with caplog.at_level(logging.WARNING):  # and work that is done is not undone by a missing row
        assert forms.kept("jobs-summary", params, lambda: {"n": 1}) == {"n": 1}
    assert caplog.messages == ["the run is missing in ops.runs: process 7 holds the lock"] * 2


@pytest.mark.parametrize("pseudonymise", [False, True])
def test_paths_of_a_pseudonymised_ingest_are_not_kept(
    params: SummaryFlowParams, monkeypatch: pytest.MonkeyPatch, pseudonymise: bool
) -> None:
    written: list[Any] = []
    monkeypatch.setattr(forms, "record_run", lambda _, run: written.append(run))
    asked = IngestParams(
        paths=["/logs/ada", "/logs/ada lovelace.csv"],
        read=ReadParams(pseudonymise=pseudonymise),
        warehouse=params.warehouse,
    )
    with pytest.raises(BadInput):
        forms.kept("jobs-ingest", asked, failing(BadInput("/logs/ada/grace.csv", "is no log", "a job log")))
    (run,) = written
    hidden = {"paths": ["(pseudonymised)"] * 2, "error": "BadInput: (pseudonymised): is no log; expected a job log"}
    whole = {"paths": asked.paths, "error": "BadInput: /logs/ada/grace.csv: is no log; expected a job log"}
    assert {"paths": run.parameters["paths"], **run.figures} == (hidden if pseudonymise else whole)


def record_of(error: Exception) -> logging.LogRecord:
    info = (type(error), error, None)
    return logging.LogRecord("prefect.flow_runs", logging.ERROR, __file__, 1, "Encountered %r", (error,), info)


def test_a_users_mistake_is_one_line_without_a_traceback() -> None:
    record = record_of(BadInput("x.csv", "is bad", "a good file", "export it again"))
    assert OneLine().filter(record)
    assert record.getMessage() == "x.csv: is bad; expected a good file; export it again"
    assert record.exc_info is None
    fault = record_of(ZeroDivisionError("division by zero"))
    assert OneLine().filter(fault) and fault.exc_info is not None


def test_the_filter_is_set_once_however_often_flows_run() -> None:
    for _ in range(3):
        show_errors_in_one_line()
    filters = logging.getLogger("prefect.flow_runs").filters
    assert len([present for present in filters if isinstance(present, OneLine)]) == 1


def test_what_steps_log_reaches_the_run_but_not_a_quiet_terminal() -> None:
    root, steps = logging.getLogger(), logging.getLogger("tasks")
    handler = logging.StreamHandler()
    levels = {one: one.level for one in [*root.handlers, handler]}
    root.addHandler(handler)
    old_root, old_steps = root.level, steps.level
    try:
        root.setLevel(logging.WARNING)
        steps.setLevel(logging.NOTSET)
        show_steps()
        assert steps.isEnabledFor(logging.INFO)
        assert handler.level == logging.WARNING
    finally:
        root.removeHandler(handler)
        root.setLevel(old_root)
        steps.setLevel(old_steps)
        for one, level in levels.items():
            one.setLevel(level)


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
    return set(first_parameters(Settings(), flow)) | set(resolved_parameters(Settings(), flow))


def fields_of(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The fields that the form draws: none of them is a group of others."""
    fields: dict[str, dict[str, Any]] = schema["properties"]
    assert not any("$ref" in str(field) for name, field in fields.items() if name != "expert")
    return fields


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_field_of_a_form_is_titled_described_filled_in_and_bounded(entry: DeploymentEntry) -> None:
    schema = schema_of(entry)
    fields, filled = fields_of(schema), filled_in(entry)
    assert len(fields) <= 12
    assert "expert" not in list(fields)[:-1]  # it comes last
    for place, field in fields.items():
        about = str(field.get("description", ""))
        assert field.get("title") and about, place
        assert "<" not in about and not about.endswith("."), place  # no text is taken for HTML, none is a sentence
        assert "default" in field or place in filled, place
        if field.get("type") in ("integer", "number"):
            assert {"minimum", "exclusiveMinimum"} & set(field) and {"maximum", "exclusiveMaximum"} & set(field), place
        if bounds := bounds_of(field):
            assert about.endswith(f"; allowed: {bounds}"), place


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


def test_a_deployment_shows_the_settings_that_will_run() -> None:
    settings = Settings.model_validate({"whorl": {"threads": 7}, "jobs": {"read": {"time_zone": "Europe/Berlin"}}})
    found = resolved_parameters(settings, flow_of("jobs-ingest"))
    assert (found["time_zone"], found["expert"]) == ("Europe/Berlin", {"warehouse.threads": 7})
    assert found["home"].endswith("/data")
    assert "paths" not in found


def flow_of(name: str) -> Any:
    [entry] = [entry for entry in ENTRIES if entry.name == name]
    return entry.load_flow()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_parameters_come_back_from_their_form(entry: DeploymentEntry) -> None:
    flow = entry.load_flow()
    required = dict.fromkeys(schema_of(entry).get("required", []), "somewhere")
    shown = required | first_parameters(Settings(), flow) | resolved_parameters(Settings(), flow)
    params = from_form(model_of(flow), shown)
    assert form_fields(params).get("expert", {}) == {}
    assert from_form(model_of(flow), form_fields(params)) == params


def test_an_expert_changes_one_value_and_leaves_all_others() -> None:
    model = model_of(flow_of("jobs-train"))
    params = from_form(model, {"home": "/home", "seed": 3, "expert": {"evaluate.predict.n_trees": 33}})
    usual = from_form(model, {"home": "/home", "seed": 3})
    assert params.evaluate.predict.n_trees == 33  # type: ignore[attr-defined]
    assert form_fields(params) == form_fields(usual) | {"expert": {"evaluate.predict.n_trees": 33}}


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"expert": {"evaluate.predict.n_tree": 3}},
            "expert: evaluate.predict.n_tree: no such parameter here; expected one such as evaluate.predict.n_trees",
        ),
        ({"expert": {"evaluate.seed": 3}}, "expert: evaluate.seed: no such parameter here"),  # seed is a field
        (
            {"expert": {"evaluate.predict.n_trees": -3}},
            r"evaluate\.predict\.n_trees: -3 is not allowed .*; expected a whole number at least 1 and at most 1,000",
        ),
        ({"seed": -1}, r"evaluate\.seed: -1 is not allowed .*; expected a whole number at least 0"),
    ],
)
def test_a_wrong_name_or_value_is_one_line_with_the_field_and_its_bound(fields: dict[str, Any], line: str) -> None:
    with pytest.raises(BadSetting, match=line):
        from_form(model_of(flow_of("jobs-train")), {"home": "/home", **fields})


def test_a_form_lists_the_sources_that_there_are_beside_its_default(job_log: Any) -> None:
    flow = flow_of("jobs-train")
    warehouse = job_log([{"runtime_s": 5.0}])
    source = form_of(flow, known_sources(warehouse, "jobs"))["properties"]["source"]
    assert source["anyOf"][0]["enum"] == ["", "log"]
    assert "type" not in source
    assert known_sources(warehouse, "nodes") == []
    assert form_of(flow)["properties"]["source"]["type"] == "string"  # nothing to list


@pytest.mark.usefixtures("prefect_server")
def test_the_server_refuses_a_wrong_name_or_value_when_the_run_is_made(tmp_path: Path) -> None:
    flow = flow_of("jobs-train")
    with get_client(sync_client=True) as client:
        made = client.create_deployment(
            flow_id=client.create_flow_from_name(flow.name),
            name="refusing",
            parameters=resolved_parameters(Settings(), flow),
            parameter_openapi_schema=form_of(flow, ["cluster-a"]),
            enforce_parameter_schema=True,
        )
        known = client.read_deployment(made).parameters
        right = {**known, "expert": {"evaluate.predict.n_trees": 33}}
        assert client.create_flow_run_from_deployment(made, parameters=right).parameters == right
        for source in ("cluster-a", "one that came later"):
            client.create_flow_run_from_deployment(made, parameters={**known, "source": source})
        with pytest.raises(PrefectHTTPStatusError, match="409"):
            client.create_flow_run_from_deployment(made, parameters={**known, "source": "x" * 1000})
        for wrong, told in (
            ({"expert": {"evaluate.predict.n_trees": -3}}, "-3 is less than the minimum of 1"),
            ({"expert": {"evaluate.predict.n_tree": 3}}, "evaluate.predict.n_tree' does not match"),
            ({"sauce": "cluster-a"}, "'sauce' was unexpected"),  # it would crash when it runs
        ):
            with pytest.raises(PrefectHTTPStatusError, match="409") as refused:
                client.create_flow_run_from_deployment(made, parameters={**known, **wrong})
            assert told in refused.value.response.text


TITLES = {
    "lock_wait_s": "Lock wait (s)", "memory_mb": "Memory (MB)", "flow_runs_kept_days": "Flow runs kept (days)",
    "paths": "Paths", "prefect_api": "Prefect API", "minutes": "Minutes", "with_summary": "With summary",
    "n_rows": "Number of rows", "min_support": "Minimum support", "max_line_bytes": "Maximum line (bytes)",
    "max_bytes": "Maximum size (bytes)", "max_ratio": "Maximum ratio", "sacct_fields": "sacct fields",
}  # fmt: skip


def test_titles_are_words_with_units() -> None:
    assert {name: title_of(name) for name in TITLES} == TITLES


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
