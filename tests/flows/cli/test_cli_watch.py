"""`whorl jobs watch`: the settings that reach its flow."""

from collections.abc import Callable
from typing import Any

import pytest

from flows.cli.invocation import Invocation

Whorl = Callable[..., Any]


def test_settings_of_alarms_and_drift_reach_the_flow(
    whorl: Whorl, varied_log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def watch(params: Any) -> dict[str, Any]:
        asked.append(params)
        return {"alarms": [], "n_alarms": 0}

    monkeypatch.setattr(Invocation, "prepare_flows", lambda self: None)
    monkeypatch.setattr("flows.jobs.watch_jobs", watch)
    settings = {
        "WHORL_JOBS__WATCH__LOOK_BACK_DAYS": "3",
        "WHORL_JOBS__WATCH__ALARMS_PER_DAY": "0.5",
        "WHORL_JOBS__DRIFT__IS_WATCHED": "false",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    ended = whorl("jobs", "watch")
    assert (ended.code, ended.out) == (0, "")
    (params,) = asked
    assert (params.watch.look_back_days, params.watch.alarms_per_day) == (3, 0.5)
    assert not params.drift.is_watched
