"""The model registry: whole models only, an append-only list of champions, promote and roll back."""

import hashlib
import json
import math
from datetime import datetime, timedelta

import pytest

from tasks.errors import BadInput, NotFound, WhorlError
from tasks.warehouse import registry
from tasks.warehouse.connection import fetch
from tasks.warehouse.copies import rebuild

NOON = datetime(2026, 1, 1, 12)


def card(model_id="m1", *, day=1, source="log", kind="shapes", **metrics):
    return registry.ModelCard(
        model_id=model_id, word="jobs", source=source, kind=kind, trained_at=NOON + timedelta(days=day), run_id="r",
        data_version="d", code_version="c", seed=7, parameters={"k": 8, "ü": [1.5, None]},
        metrics=metrics or {"crps": 0.5},
    )  # fmt: skip


def write_weights(folder):
    (folder / "weights.bin").write_bytes(b"w")


@pytest.fixture
def add(warehouse):
    """A function that registers a model."""

    def register(model_id="m1", **kwargs):
        made = card(model_id, **kwargs)
        registry.register(warehouse, made, write_weights)
        return made

    return register


def in_use(warehouse, source="log", kind="shapes"):
    present = registry.champion(warehouse.models, "jobs", source, kind)
    return present and present.model_id


def test_a_model_is_a_folder_with_card_and_weights_and_a_row_of_the_index(warehouse, add):
    made = add()
    folder = warehouse.models / "jobs" / "m1"
    assert {path.name for path in folder.iterdir()} == {"model.json", "weights.bin"}
    files = {"weights.bin": hashlib.sha256(b"w").hexdigest()}
    assert registry.read_card(warehouse.models, "jobs", "m1") == made.model_copy(update={"files": files})
    row = fetch(warehouse, "SELECT * FROM ops.models").iloc[0].to_dict()
    assert (row["model_id"], row["seed"], json.loads(row["metrics"])) == ("m1", 7, {"crps": 0.5})
    assert json.loads(row["parameters"]) == made.parameters


def test_training_that_fails_leaves_no_model_and_no_folder(warehouse):
    def fail(folder):
        write_weights(folder)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        registry.register(warehouse, card(), fail)
    assert list((warehouse.models / "jobs").iterdir()) == []
    assert registry.cards(warehouse.models) == []


def test_nobody_sees_a_model_that_is_being_written(warehouse):
    seen = []

    def look(folder):
        write_weights(folder)
        (folder / "model.json").write_text("half")
        seen.extend(registry.cards(warehouse.models))

    registry.register(warehouse, card(), look)
    assert seen == []


def test_a_model_whose_id_is_taken_is_left_as_it_is(warehouse, add):
    add(crps=0.5)
    registry.register(warehouse, card(crps=0.1), lambda folder: 1 / 0)
    assert registry.read_card(warehouse.models, "jobs", "m1").metrics == {"crps": 0.5}


def test_a_model_that_does_not_exist_is_one_clear_line(warehouse, add):
    with pytest.raises(NotFound, match=r"model 'm9' of jobs: not in .*; there are: none"):
        registry.read_card(warehouse.models, "jobs", "m9")
    add()
    with pytest.raises(NotFound, match=r"there are: m1$"):
        registry.promote(warehouse, "jobs", "m9", "why not")


def test_a_broken_card_is_one_clear_line(warehouse, add):
    add()
    file = warehouse.models / "jobs" / "m1" / "model.json"
    file.write_text('{"model_id": "m1"}')
    with pytest.raises(BadInput) as error:
        registry.cards(warehouse.models, is_strict=True)
    assert str(error.value) == (
        f"{file}: not a ModelCard (word: Field required); expected what whorl wrote there; "
        "bring it back from a backup, or move it away"
    )


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("flipped", r"weights.bin: has changed since the model was registered \(sha256 fcb5f40df9be\)"),
        ("missing", "weights.bin: is missing from the model"),
        ("added", "trees-ratio.txt: was added to the model"),
    ],
)
def test_a_model_whose_files_are_not_those_that_were_registered_is_not_loaded(warehouse, add, how, told):
    add()
    folder = warehouse.models / "jobs" / "m1"
    for name in ("training.json", "weights.bin.part"):  # a note beside it and half a file are no part of it
        (folder / name).write_text("later")
    assert registry.folder_of(warehouse.models, "jobs", "m1") == folder
    if how == "flipped":
        (folder / "weights.bin").write_bytes(b"W")
    elif how == "missing":
        (folder / "weights.bin").unlink()
    else:
        (folder / "trees-ratio.txt").write_text("trees")
    with pytest.raises(BadInput, match=told) as error:
        registry.folder_of(warehouse.models, "jobs", "m1")
    fix = "put another into use with 'whorl models rollback jobs shapes --source log', or train again"
    assert str(error.value).endswith(f"bring it back from a backup, {fix}")


def test_a_model_of_an_earlier_version_has_no_checksums_and_loads(warehouse, add):
    add()
    file = warehouse.models / "jobs" / "m1" / "model.json"
    said = json.loads(file.read_text())
    del said["files"]
    file.write_text(json.dumps(said))
    (file.parent / "weights.bin").write_bytes(b"other")
    assert registry.folder_of(warehouse.models, "jobs", "m1") == file.parent


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("word", "jobs/../../../x", "not a ModelCard .word: String should match pattern"),
        ("model_id", "../m1", "not a ModelCard .model_id: String should match pattern"),
        ("model_id", "m2", "is the card of model 'm2' of 'jobs'; expected that of the model whose folder it lies in"),
        ("word", "nodes", "is the card of model 'm1' of 'nodes'"),
    ],
)
def test_a_card_that_names_another_place_is_refused(warehouse, add, key, value, told):
    add()
    file = warehouse.models / "jobs" / "m1" / "model.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    with pytest.raises(BadInput, match=told):
        registry.read_card(warehouse.models, "jobs", "m1")
    assert registry.cards(warehouse.models) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (b'"m1"', b'"../../m1"', r"not a Decision .model_id: String should match pattern"),
        (b"{", b"nonsense\n{", r"champions.jsonl: not a Decision \(JSON: .*backup, or move it away"),
    ],
)
def test_a_champion_whose_id_leads_elsewhere_or_line_is_broken_is_refused(warehouse, add, old, new, told):
    add()
    registry.promote(warehouse, "jobs", "m1", "first")
    file = warehouse.models / "jobs" / "champions.jsonl"
    file.write_bytes(file.read_bytes().replace(old, new, 1))
    with pytest.raises(BadInput, match=told):
        in_use(warehouse)


def test_a_model_that_is_a_link_goes_without_what_it_leads_to(warehouse, add, tmp_path):
    add()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("mine")
    (warehouse.models / "jobs" / "m2").symlink_to(tmp_path / "kept")
    (warehouse.models / "elsewhere").symlink_to(tmp_path)
    registry.remove_model(warehouse.models, "jobs", "m2")
    with pytest.raises(WhorlError, match=r"leads out of .*; nothing was removed"):
        registry.remove_model(warehouse.models, "elsewhere", "kept")
    assert (tmp_path / "kept" / "file").read_text() == "mine"
    assert [path.name for path in (warehouse.models / "jobs").iterdir()] == ["m1"]


def test_what_is_registered_is_for_its_owner_alone(warehouse, add):
    add()
    (warehouse.models / "jobs").chmod(0o755)
    warehouse.models.chmod(0o755)
    add("m2")
    assert warehouse.models.stat().st_mode & 0o777 == 0o700  # made by an earlier version, and narrowed
    assert {path.stat().st_mode & 0o077 for path in (warehouse.models / "jobs" / "m2").iterdir()} == {0}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_metric_that_is_no_number_does_not_break_the_registry(warehouse, add, value):
    add(crps=value, other=1.0)
    found = registry.read_card(warehouse.models, "jobs", "m1").metrics
    assert repr(found["crps"]) == repr(value)
    metrics = fetch(warehouse, "SELECT metrics->>'other' AS other, metrics->>'crps' AS crps FROM ops.models").iloc[0]
    assert (metrics["other"], metrics.isna()["crps"]) == ("1.0", True)


def test_champions_belong_to_word_source_and_kind(warehouse, add):
    assert in_use(warehouse) is None
    for model_id, source, kind in [("a", "one", "shapes"), ("b", "two", "shapes"), ("c", "one", "trees")]:
        add(model_id, source=source, kind=kind)
        registry.promote(warehouse, "jobs", model_id, "first")
    assert [in_use(warehouse, *what) for what in [("one", "shapes"), ("two", "shapes"), ("one", "trees")]] == list(
        "abc"
    )


def test_the_list_of_champions_only_grows_and_the_index_follows(warehouse, add):
    file, before = warehouse.models / "jobs" / "champions.jsonl", b""
    for day, model_id in enumerate("abc"):
        add(model_id, day=day)
        registry.promote(warehouse, "jobs", model_id, f"for {model_id}: ü")
        assert file.read_bytes().startswith(before)
        before = file.read_bytes()
    registry.roll_back(warehouse, "jobs", "log", "shapes")
    assert file.read_bytes().startswith(before)
    rows = (
        fetch(warehouse, "SELECT sequence, model_id, reason FROM ops.champions ORDER BY sequence").to_numpy().tolist()
    )
    assert rows == [[1, "a", "for a: ü"], [2, "b", "for b: ü"], [3, "c", "for c: ü"], [4, "b", "rolled back from c"]]


def test_promoting_the_champion_again_changes_nothing(warehouse, add):
    add()
    first = registry.promote(warehouse, "jobs", "m1", "first")
    assert registry.promote(warehouse, "jobs", "m1", "again") == first
    assert len(registry.decisions(warehouse.models, "jobs")) == 1


def test_rolling_back_twice_goes_back_twice_and_never_forward(warehouse, add):
    for day, model_id in enumerate("abc"):
        add(model_id, day=day)
        registry.promote(warehouse, "jobs", model_id, "better")
    went = [registry.roll_back(warehouse, "jobs", "log", "shapes").model_id for _ in range(2)]
    assert went == ["b", "a"]
    with pytest.raises(NotFound, match="jobs, source log, shapes: no earlier champion to roll back to"):
        registry.roll_back(warehouse, "jobs", "log", "shapes")
    for anew, before in (("c", "a"), ("b", "a")):  # an earlier champion that is promoted anew can be rolled back
        registry.promote(warehouse, "jobs", anew, "after all")
        assert registry.roll_back(warehouse, "jobs", "log", "shapes").model_id == before


@pytest.mark.parametrize("half", [b'{"source": "lo', b'{"reason": "\xc3', b"{"])
def test_a_half_written_last_line_does_not_count_and_is_gone_after_the_next_decision(warehouse, add, half):
    for day, model_id in enumerate("ab"):
        add(model_id, day=day)
    registry.promote(warehouse, "jobs", "a", "first")
    file = warehouse.models / "jobs" / "champions.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + half)
    assert in_use(warehouse) == "a"
    registry.promote(warehouse, "jobs", "b", "second")
    assert file.read_bytes().startswith(whole)
    assert [one.model_id for one in registry.decisions(warehouse.models, "jobs")] == ["a", "b"]


def test_the_index_can_be_made_again_from_the_folders(warehouse, add):
    add()
    registry.promote(warehouse, "jobs", "m1", "first")
    before = fetch(warehouse, "SELECT * FROM ops.models JOIN ops.champions USING (model_id)")
    warehouse.file.unlink()
    rebuild(warehouse)
    assert fetch(warehouse, "SELECT * FROM ops.models JOIN ops.champions USING (model_id)").equals(before)
