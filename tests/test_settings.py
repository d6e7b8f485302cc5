"""Settings: who wins, what is refused and in which words, and where each value came from."""

import os
from pathlib import Path

import pytest
from pydantic import BaseModel

from tasks.errors import BadSetting
from tasks.settings import ROOT, Settings, load_settings

JOBS_KEYS = ", ".join(Settings.model_fields["jobs"].annotation.model_fields)


@pytest.fixture
def conf(tmp_path, monkeypatch):
    """An empty conf folder, and an environment without settings."""
    for name in [name for name in os.environ if name.startswith("WHORL_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "conf"
    (folder / "local").mkdir(parents=True)
    return folder


def refusal(conf, flags=None):
    with pytest.raises(BadSetting) as error:
        load_settings(flags, conf=conf)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_without_any_file_and_with_empty_ones_the_class_defaults_hold_and_cannot_be_changed(conf):
    for content in (None, "# home: x\n"):
        if content is not None:
            (conf / "whorl.yaml").write_text(content)
            (conf / "jobs.yaml").write_text("")
        found = load_settings(conf=conf)
        assert (found.settings, found.origins) == (Settings(), {})
    with pytest.raises(ValueError, match="frozen"):
        found.settings.whorl.threads = 3


def test_conf_gives_way_to_local_that_to_the_environment_and_that_to_a_flag(conf, monkeypatch):
    def support(flags=None):
        found = load_settings(flags, conf=conf)
        return found.settings.jobs.summary.min_support, found.origins.get("jobs.summary.min_support")

    assert support() == (3, None)
    (conf / "jobs.yaml").write_text("summary: {min_support: 4}")
    assert support() == (4, "conf/jobs.yaml")
    (conf / "local" / "jobs.yaml").write_text("summary: {min_support: 5}")
    assert support() == (5, "conf/local/jobs.yaml")
    monkeypatch.setenv("WHORL_JOBS__SUMMARY__MIN_SUPPORT", "6")
    assert support() == (6, "WHORL_JOBS__SUMMARY__MIN_SUPPORT")
    assert support({"jobs": {"summary": {"min_support": 7}}}) == (7, "flag")


def test_layers_are_joined_key_by_key(conf, monkeypatch):
    (conf / "jobs.yaml").write_text("summary: {min_support: 4, outlier_delta_s: 5}\nread: {time_zone: UTC}")
    (conf / "local" / "jobs.yaml").write_text("summary: {min_support: 6}")
    monkeypatch.setenv("WHORL_JOBS__READ__FUTURE_SLACK_S", "0")
    jobs = load_settings({"jobs": {"summary": {"outlier_ratio": 20}}}, conf=conf).settings.jobs
    assert (jobs.summary.min_support, jobs.summary.outlier_delta_s, jobs.summary.outlier_ratio) == (6, 5, 20)
    assert (jobs.read.time_zone, jobs.read.future_slack_s) == ("UTC", 0)


def test_origins_name_only_what_differs_from_the_default(conf):
    (conf / "jobs.yaml").write_text("summary: {min_support: 3, outlier_delta_s: 5}")
    assert load_settings(conf=conf).origins == {"jobs.summary.outlier_delta_s": "conf/jobs.yaml"}


def test_what_conf_ships_is_the_default_and_has_no_origin(conf):
    assert load_settings(conf=ROOT / "conf" / "nowhere").settings == Settings()
    shipped = load_settings(conf=ROOT / "conf")
    assert [place for place in shipped.origins.values() if place in ("conf/jobs.yaml", "conf/whorl.yaml")] == []


def test_the_short_names_set_home_and_datasets(conf, monkeypatch):
    monkeypatch.setenv("WHORL_HOME", "/var/whorl")
    monkeypatch.setenv("WHORL_DATASETS", "/var/data")
    found = load_settings(conf=conf)
    assert (found.settings.whorl.home, found.settings.whorl.datasets) == ("/var/whorl", "/var/data")
    assert found.origins == {"whorl.home": "WHORL_HOME", "whorl.datasets": "WHORL_DATASETS"}
    assert found.settings.warehouse.file == Path("/var/whorl/warehouse.duckdb")


def test_lists_and_mappings_come_from_the_environment_as_in_yaml(conf, monkeypatch):
    monkeypatch.setenv("WHORL_JOBS__SUMMARY__STATUSES", "[completed, failed]")
    monkeypatch.setenv("WHORL_JOBS__READ__COLUMNS", "{run_id: Job ID}")
    jobs = load_settings(conf=conf).settings.jobs
    assert list(jobs.summary.statuses) == ["completed", "failed"]
    assert jobs.read.columns == {"run_id": "Job ID"}


def test_a_list_of_models_is_set_as_a_whole(conf, monkeypatch):
    (conf / "jobs.yaml").write_text("record:\n  periods:\n    - {name: A, days: 3}\n    - {name: B, days: 2}\n")
    found = load_settings(conf=conf)
    assert [(period.name, period.days) for period in found.settings.jobs.record.periods] == [("A", 3), ("B", 2)]
    assert found.origins == {"jobs.record.periods": "conf/jobs.yaml"}
    monkeypatch.setenv("WHORL_JOBS__RECORD__PERIODS", "[{name: C, days: 1}]")
    assert [period.name for period in load_settings(conf=conf).settings.jobs.record.periods] == ["C"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            "periods: [{name: A, days: 3}, {name: B, days: 0}]",
            "jobs.record.periods.1.days: 0 is not allowed (input should be greater than or equal to 1); "
            "expected a whole number at least 1 and at most 10,000",
        ),
        (
            "periods: [{name: A, days: 3, of: 4}]",
            "jobs.record.periods.0.of: no such key; allowed in jobs.record.periods.0: name, days",
        ),
        (
            "periods: 3",
            "jobs.record.periods: 3 is not allowed (input should be a valid tuple); expected a list; "
            "each with keys of name, days, length at least 1",
        ),
    ],
)
def test_what_is_wrong_inside_a_list_is_named_by_its_place(conf, content, told):
    (conf / "jobs.yaml").write_text(f"record: {{{content}}}")
    assert refusal(conf) == f"conf/jobs.yaml: {told}"


def test_paths_are_relative_to_the_project_and_know_the_users_home(conf, monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    for written, home in [("data", ROOT / "data"), ("~/w", Path("/home/somebody/w")), ("/abs", Path("/abs"))]:
        assert load_settings({"whorl": {"home": written}}, conf=conf).settings.warehouse.home == home
    landings = [("", str(ROOT / "data" / "landing")), ("in", str(ROOT / "in")), ("~/in", "/home/somebody/in")]
    for written, landing in [*landings, ("s3://bucket/in", "s3://bucket/in"), ("memory://in", "memory://in")]:
        assert load_settings({"whorl": {"landing": written}}, conf=conf).settings.warehouse.landing_folder == landing


def test_limits_reach_the_warehouse(conf):
    limits = {"memory_mb": 512, "threads": 3, "lock_wait_s": 7}
    found = load_settings({"whorl": limits}, conf=conf).settings.warehouse
    assert found.model_dump(include=set(limits)) == limits


NO_INTEGER = "is not allowed (input should be a valid integer"
UNPARSED = f"{NO_INTEGER}, unable to parse string as an integer)"
SUPPORT = "expected a whole number at least 2 and at most 1,000,000"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("summary: {min_support: many}", f"'many' {UNPARSED}; {SUPPORT}"),
        ("summary: {min_support: 2.5}", f"2.5 {NO_INTEGER}, got a number with a fractional part); {SUPPORT}"),
        ("summary: {min_support: 1}", f"1 is not allowed (input should be greater than or equal to 2); {SUPPORT}"),
        ("summary: {min_support: 2000000}", "2000000 is not allowed (input should be less than or equal to"),
        ("summary: {min_support: }", f"None is not allowed (input should be a valid integer); {SUPPORT}"),
        ("summary: {min_support: [3]}", f"[3] is not allowed (input should be a valid integer); {SUPPORT}"),
        ("summary: {min_support: {a: 1}}", f"{{'a': 1}} {NO_INTEGER}); {SUPPORT}"),
        ("summary: {min_support: 2026-01-01}", f"datetime.date(2026, 1, 1) {NO_INTEGER})"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_one_line_with_place_key_and_what_is_allowed(conf, content, told):
    (conf / "local" / "jobs.yaml").write_text(content)
    (conf / "jobs.yaml").write_text("summary: {min_support: 4}")
    assert refusal(conf).startswith(f"conf/local/jobs.yaml: jobs.summary.min_support: {told}")


def test_true_is_no_number(conf):
    (conf / "whorl.yaml").write_text("threads: true")
    assert refusal(conf) == (
        "conf/whorl.yaml: whorl.threads: True is not allowed (it is no number); "
        "expected a whole number at least 1 and at most 1,024"
    )


@pytest.mark.parametrize("value", [".nan", ".inf", "-.inf", "1e400"])
def test_what_is_no_finite_number_is_refused(conf, value):
    (conf / "jobs.yaml").write_text(f"summary: {{outlier_ratio: {value}}}")
    told = refusal(conf)
    assert told.startswith("conf/jobs.yaml: jobs.summary.outlier_ratio: ")
    assert told.endswith("expected a number more than 1 and at most 1,000,000")


def test_no_number_has_an_open_end():
    """NaN and infinity are refused only where a bound is given: every number must have both."""

    def unbounded(model, prefix):
        for key, info in model.model_fields.items():
            kind = info.annotation
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from unbounded(kind, f"{prefix}{key}.")
            elif kind in (int, float):
                has = {name for part in info.metadata for name in ("ge", "gt", "le", "lt") if hasattr(part, name)}
                if not (has & {"ge", "gt"} and has & {"le", "lt"}):
                    yield f"{prefix}{key}"

    assert list(unbounded(Settings, "")) == []


def test_an_unknown_key_is_one_line_with_the_keys_that_there_are(conf):
    (conf / "local" / "jobs.yaml").write_text("summary: {min_suport: 4}")
    assert refusal(conf) == (
        "conf/local/jobs.yaml: jobs.summary.min_suport: no such key; allowed in jobs.summary: statuses, min_support, "
        "outlier_ratio, outlier_delta_s"
    )
    (conf / "local" / "jobs.yaml").write_text("sumary: {min_support: 4}")
    assert refusal(conf) == f"conf/local/jobs.yaml: jobs.sumary: no such key; allowed in jobs: {JOBS_KEYS}"


def test_a_key_that_is_no_text_is_an_unknown_key(conf):
    (conf / "jobs.yaml").write_text("1: 2")
    assert refusal(conf) == f"conf/jobs.yaml: jobs.1: no such key; allowed in jobs: {JOBS_KEYS}"
    (conf / "jobs.yaml").write_text("summary: {1: 2}")
    assert refusal(conf).startswith("conf/jobs.yaml: jobs.summary.1: ")


@pytest.mark.parametrize("content", ["summary: 5", "summary: [1]", "summary: text"])
def test_a_value_where_keys_and_values_stand_names_the_file_that_wrote_it(conf, content):
    (conf / "jobs.yaml").write_text("summary: {min_support: 4}")
    (conf / "local" / "jobs.yaml").write_text(content)
    told = refusal(conf)
    assert told.startswith("conf/local/jobs.yaml: jobs.summary: ")
    assert told.endswith("expected keys and values")


def test_a_heading_with_nothing_below_it_changes_nothing(conf):
    (conf / "jobs.yaml").write_text("summary: {min_support: 4}")
    (conf / "local" / "jobs.yaml").write_text("summary:\n  # min_support: 5\n")
    assert load_settings(conf=conf).settings.jobs.summary.min_support == 4


def test_a_word_that_is_not_allowed_is_named_with_its_list(conf):
    (conf / "jobs.yaml").write_text("summary: {statuses: [completed, done]}")
    told = refusal(conf)
    assert told.startswith("conf/jobs.yaml: jobs.summary.statuses.1: 'done' is not allowed (")
    assert told.endswith(
        "expected a list; each one of completed, failed, cancelled, timeout, running, pending, unknown, "
        "length at least 1"
    )
    (conf / "jobs.yaml").write_text("summary: {statuses: completed}")
    assert refusal(conf).startswith(
        "conf/jobs.yaml: jobs.summary.statuses: 'completed' is not allowed (input should be a"
    )


def test_an_unknown_word_is_refused_in_each_place(conf, monkeypatch):
    (conf / "local" / "job.yaml").write_text("a: 1")
    assert refusal(conf) == (
        f"{conf / 'local' / 'job.yaml'}: no word of that name; expected whorl.yaml, jobs.yaml, workloads.yaml, "
        "nodes.yaml, advice.yaml; rename or remove the file"
    )
    (conf / "local" / "job.yaml").unlink()
    allowed = "whorl, jobs, workloads, nodes, advice"
    assert refusal(conf, {"job": {"a": 1}}) == f"flag: job: no such key; allowed in settings: {allowed}"
    for name in ("WHORL_JOB__A", "WHORL_JOBS", "WHORL_", "WHORL_HOMES"):
        monkeypatch.setenv(name, "1")
        assert refusal(conf) == (
            f"{name}: no such setting; expected WHORL_HOME, WHORL_DATASETS or WHORL_WHORL__<KEY>, WHORL_JOBS__<KEY>, "
            "WHORL_WORKLOADS__<KEY>, WHORL_NODES__<KEY>, WHORL_ADVICE__<KEY>"
        )
        monkeypatch.delenv(name)


def test_a_file_that_would_silently_not_be_read_is_refused(conf):
    (conf / "local" / "jobs.yml").write_text("summary: {min_support: 4}")
    assert refusal(conf) == f"{conf / 'local' / 'jobs.yml'}: is not read; expected jobs.yaml; rename it"


@pytest.mark.parametrize(
    "content", [b"a: [1", b"a: b: c", b"\ta: 1", b"a: !!python/object/apply:os.getcwd []", b"\xff\xfea", b"a: \x00"]
)
def test_what_is_no_yaml_is_one_line(conf, content):
    (conf / "jobs.yaml").write_bytes(content)
    told = refusal(conf)
    assert told.startswith(f"{conf / 'jobs.yaml'}: not YAML: ")
    assert told.endswith("; mend that line")


@pytest.mark.parametrize(("content", "kind"), [("- a\n- b", "list"), ("hello", "str"), ("5", "int")])
def test_a_file_without_keys_is_one_line(conf, content, kind):
    (conf / "jobs.yaml").write_text(content)
    assert refusal(conf) == (f"{conf / 'jobs.yaml'}: holds a {kind}; expected keys and values, such as 'summary:'")


def test_a_file_that_cannot_be_read_is_one_line(conf):
    (conf / "jobs.yaml").mkdir()
    assert refusal(conf) == f"{conf / 'jobs.yaml'}: cannot be read (Is a directory); expected a file; check its rights"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("WHORL_HOME", "", "whorl.home: '' is not allowed (string should have at least 1 character); expected"),
        ("WHORL_JOBS__SUMMARY__MIN_SUPPORT", "", f"jobs.summary.min_support: '' {UNPARSED}; {SUPPORT}"),
        ("WHORL_JOBS__SUMMARY__MIN_SUPPORT", "nan", "jobs.summary.min_support: 'nan' is not allowed"),
        ("WHORL_JOBS__SUMMARY__OUTLIER_RATIO", "inf", "jobs.summary.outlier_ratio: 'inf' is not allowed"),
        ("WHORL_JOBS__SUMMARY", "5", "jobs.summary: '5' is not allowed"),
        ("WHORL_JOBS__", "5", "jobs.: no such key; allowed in jobs: read, "),
        ("WHORL_JOBS__SUMMARY__NOPE", "5", "jobs.summary.nope: no such key; allowed in jobs.summary: statuses, "),
        ("WHORL_JOBS__SUMMARY__MIN_SUPPORT__DEEPER", "5", "jobs.summary.min_support: {'deeper': '5'} is not allowed"),
        ("WHORL_JOBS__SUMMARY__STATUSES", "[completed", "'[completed' is not YAML: while parsing a flow sequence"),
        ("WHORL_JOBS__READ__PSEUDONYMISE", "perhaps", "jobs.read.pseudonymise: 'perhaps' is not allowed"),
    ],
)  # fmt: skip
def test_a_wrong_variable_is_one_line_with_its_name(conf, monkeypatch, name, text, told):
    monkeypatch.setenv(name, text)
    assert refusal(conf).startswith(f"{name}: {told}")


def test_a_wrong_variable_is_named_where_a_verb_has_flags_of_the_same_group_that_nobody_gave(monkeypatch):
    monkeypatch.setenv("WHORL_WHORL__PRUNE__RUNS_KEPT_DAYS", "many")
    with pytest.raises(
        BadSetting, match=r"^WHORL_WHORL__PRUNE__RUNS_KEPT_DAYS: whorl.prune.runs_kept_days: 'many' is not"
    ):
        load_settings({"whorl": {"prune": {}, "home": "/somewhere"}, "jobs": {}})
