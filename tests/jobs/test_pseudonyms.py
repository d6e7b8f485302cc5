"""Pseudonyms hide users and names, and keep the groups."""

import os
import stat
import subprocess
import sys
from hashlib import blake2b, sha256
from pathlib import Path

import pandas as pd
import pytest

from tasks.errors import BadSetting
from tasks.jobs.grouping import group_keys, normalise_name
from tasks.jobs.pseudonyms import pseudonymise
from tasks.pseudonyms import KEY_BYTES, KEY_FILE, load_key, without_names

KEY, OTHER_KEY = bytes(range(32)), bytes(32)
ROWS = pd.DataFrame(
    {
        "run_id": ["1", "2", "3", "4", "5"],
        "name": ["etl-2026-11-20", "etl-2026-11-21", "report", None, "ada"],
        "user_name": ["ada", "ada", "grace", "grace", None],
        "queue": ["night", "night", "day", "day", "day"],
        "requested_cpus": [4.0, 4.0, 1.0, 1.0, 1.0],
    }
).astype({"name": "str", "user_name": "str"})


def test_no_user_and_no_name_is_left_and_the_rest_stays() -> None:
    hidden = pseudonymise(ROWS, KEY)
    shown = hidden.to_csv()
    assert not any(word in shown for word in ("ada", "grace", "etl", "report"))
    pd.testing.assert_frame_equal(
        hidden[["run_id", "queue", "requested_cpus"]], ROWS[["run_id", "queue", "requested_cpus"]]
    )
    assert hidden[["name", "user_name"]].isna().equals(ROWS[["name", "user_name"]].isna())
    pseudonyms = pd.concat([hidden["name"], hidden["user_name"]]).dropna()
    assert pseudonyms.str.fullmatch("[0-9a-f]{12}").all()


def test_runs_of_one_recurring_job_stay_one_group() -> None:
    before, after = group_keys(ROWS), group_keys(pseudonymise(ROWS, KEY))
    assert before.groupby(after).nunique().eq(1).all() and after.groupby(before).nunique().eq(1).all()
    assert before.nunique() == 4


def test_a_pseudonym_never_looks_like_a_date_or_a_counter() -> None:
    names = pd.DataFrame(
        {"name": [f"job {chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)}" for i in range(9000)]}
    )
    hidden = pseudonymise(names, KEY)["name"]
    assert hidden.nunique() == 9000
    assert [name for name in hidden if normalise_name(name) != name] == []


@pytest.mark.parametrize("digits", ["202611210000", "000000000000", "123456789012"])
def test_a_pseudonym_of_digits_alone_would_stay_whole(digits: str) -> None:
    assert normalise_name(digits) == digits


def test_the_same_key_gives_the_same_pseudonyms_in_every_export() -> None:
    pd.testing.assert_frame_equal(pseudonymise(ROWS[::-1], KEY)[::-1], pseudonymise(ROWS, KEY))
    assert pseudonymise(ROWS, KEY)["name"][0] == pseudonymise(ROWS[1:], KEY)["name"][1]


def test_a_dictionary_of_names_is_of_no_use_without_the_key() -> None:
    assert set(pseudonymise(ROWS, KEY)["user_name"].dropna()).isdisjoint(pseudonymise(ROWS, OTHER_KEY)["user_name"])
    guesses = [function(b"ada").hexdigest()[:12] for function in (sha256, blake2b)]
    assert not set(guesses) & set(pseudonymise(ROWS, KEY)["user_name"])


def test_a_user_and_a_job_of_the_same_name_cannot_be_matched() -> None:
    hidden = pseudonymise(ROWS, KEY)
    assert hidden["name"][4] != hidden["user_name"][0]  # both are called ada


def test_a_given_group_key_is_hidden_too() -> None:
    hidden = pseudonymise(ROWS.assign(group_key=["ada etl", "ada etl", None, "x", "x"]), KEY)
    assert hidden["group_key"].nunique() == 2 and not hidden["group_key"].str.contains("ada").any()


def test_refused_lines_lose_the_line_and_what_the_reason_quotes() -> None:
    refused = pd.DataFrame({"place": [3], "reason": ["Start 'ada's | etl' is not a time"], "raw": ["7|ada|etl"]})
    assert without_names(refused).to_dict("list") == {"place": [3], "reason": ["Start '…' is not a time"], "raw": [""]}


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    key = load_key(home)
    assert len(key) == KEY_BYTES and key != bytes(KEY_BYTES)
    assert load_key(home) == key
    assert stat.S_IMODE((home / KEY_FILE).stat().st_mode) == 0o600
    assert [file.name for file in home.iterdir()] == [KEY_FILE]
    assert load_key(tmp_path / "other") != key


def test_processes_that_start_at_once_get_the_same_key(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    code = (
        "import sys, time; from pathlib import Path; from tasks.pseudonyms import load_key\n"
        "print('ready', flush=True)\n"
        "while not Path(sys.argv[1]).exists(): time.sleep(0.001)\n"
        "print(load_key(Path(sys.argv[2])).hex())"
    )
    command = [sys.executable, "-c", code, str(gate), str(tmp_path / "home")]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(3)]
    assert all(process.stdout and process.stdout.readline() == "ready\n" for process in processes)
    gate.touch()
    keys = [process.communicate(timeout=60)[0].strip() for process in processes]
    assert keys == [load_key(tmp_path / "home").hex()] * 3


def test_a_process_that_lost_the_race_takes_the_winners_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def lost(draft: Path, path: Path) -> None:
        path.write_bytes(KEY)
        path.chmod(0o600)
        link(draft, path)

    monkeypatch.setattr(os, "link", lost)
    assert load_key(tmp_path) == KEY
    assert [file.name for file in tmp_path.iterdir()] == [KEY_FILE]


def test_a_damaged_key_is_not_replaced_in_silence(tmp_path: Path) -> None:
    (tmp_path / KEY_FILE).write_bytes(KEY[:5])
    (tmp_path / KEY_FILE).chmod(0o600)
    with pytest.raises(BadSetting, match="5 bytes; expected a key of 32; put your own copy of it back"):
        load_key(tmp_path)


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    load_key(tmp_path)
    (tmp_path / KEY_FILE).chmod(0o644)
    with pytest.raises(BadSetting, match=r"others may read the key; .* run chmod 600"):
        load_key(tmp_path)


def test_ids_made_of_names_are_hidden_and_links_between_runs_survive() -> None:
    ids = ROWS.assign(run_id=[f"etl/load/{n}" for n in range(5)], matched_run_id=[None, "etl/load/0", None, None, ""])
    hidden = pseudonymise(ids, KEY, with_ids=True)
    assert hidden["run_id"].str.fullmatch("[0-9a-f]{32}").all() and hidden["run_id"].nunique() == 5
    assert hidden["matched_run_id"][1] == hidden["run_id"][0]
    assert hidden["matched_run_id"].isna().to_list() == [True, False, True, True, True]


def test_a_quoted_value_with_a_line_feed_is_blanked() -> None:
    refused = pd.DataFrame({"place": [3], "reason": ["Start 'ada\netl' is not a time"], "raw": ["7|ada"]})
    assert without_names(refused)["reason"].to_list() == ["Start '…' is not a time"]
