"""Half of a recorded campaign, judged by what another one and its other half taught; limits that are lowered for good.

    python tests/studies/nodes_third_campaign.py development|reported TRAIN… -- TESTED

Prints `transfer` figures as JSON: of stretches of the plan, by the number in the ids, even ones (development) or odd
ones (reported), without executions of which a limit was lowered for good; and of those, over both halves,

    lowered.<measure>.<detector>.<node>.<aspect>

alarm_delay_… (from the first lowered one to the first alarm), flagged_twice_… (to the second of two flagged unstressed
ones in a row), false_alarms_before."""

import json
import sys

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.nodes.detect.alarms import follow
from tasks.nodes.detect.plain import DETECTORS
from tasks.nodes.evaluate.detection import Detection, detect, detection_results
from tasks.nodes.history import read_results
from tasks.nodes.params import EvaluateParams, ReadParams
from tasks.nodes.type_tables import HOUR_S, Bools, hours_of, is_unstressed
from tasks.report.evaluation import Figures, put

STRETCH = 18  # executions of the plan: one of each benchmark on each node
LOWERED = {"cpu": ("cpu", "memory"), "disk": ("disk",), "network": ("network",)}  # what a limit is of, and who feels it
NUMBER_IN_ID = r"-(\d{4})-"  # of an execution of a recorded plan, from 1


def main(half: str, taught: list[str], tested: list[str]) -> Figures:
    """The figures of one half."""
    params = EvaluateParams()
    history = read_results([*taught, *tested], ReadParams()).history
    own = read_results(taught, ReadParams()).history.executions["execution_id"]
    is_taught = history.executions["execution_id"].isin(own).to_numpy(dtype=bool)
    found = detect(history, DETECTORS, params, is_taught)
    executions, rows = history.executions, found.judged["execution"].to_numpy(dtype=np.int64)
    is_counted = ~is_of_lowered(executions)
    is_counted[~is_taught] &= is_of_half(executions[~is_taught], half)
    figures, _ = detection_results(
        executions, Detection(found.judged[is_counted[rows]], found.reasons, found.budgets), list(DETECTORS), params
    )
    return figures | lowered_figures(executions, found.judged, params)


def is_of_half(executions: pd.DataFrame, half: str) -> Bools:
    """The executions of a half: (n_executions,). Raises BadInput where ids have no number of a recorded plan."""
    number = executions["execution_id"].astype(str).str.extract(NUMBER_IN_ID)[0]
    if number.isna().any():
        example = str(executions.loc[number.isna(), "execution_id"].iloc[0])
        raise BadInput(example, "no number of a recorded plan", "ids of 'whorl nodes record'", "give its recording")
    is_odd = (number.astype(int) - 1) // STRETCH % 2 == 1
    return np.asarray(is_odd == (half == "reported"), dtype=bool)


def is_of_lowered(executions: pd.DataFrame) -> Bools:
    """Executions whose dose says that a limit of what they measure is lowered for good: (n_executions,)."""
    limit = executions["dose"].fillna("").astype(str).str.extract(r"lowered-([a-z]+)")[0].fillna("")
    each = zip(limit, executions["aspect"].astype(str), strict=True)
    return np.array([aspect in LOWERED.get(of, ()) for of, aspect in each], dtype=bool)


def lowered_figures(executions: pd.DataFrame, judged: pd.DataFrame, params: EvaluateParams) -> Figures:
    """Of each node and aspect of which a limit is lowered: executions and seconds from the first one with it to the
    first alarm (alarm_delay_…) and to the second of two flagged unstressed ones in a row (flagged_twice_…), and alarms
    before (false_alarms_before). judged: of one protocol, in time order by detector."""
    figures: Figures = {}
    alarm = params.injection.alarm
    for detector, of_detector in judged.groupby("detector", sort=False):
        rows = executions.iloc[of_detector["execution"].to_numpy(dtype=np.int64)].reset_index(drop=True)
        rows = rows.assign(flag=of_detector["is_flagged"].to_numpy(dtype=bool), lowered=is_of_lowered(rows))
        for (node, aspect), own in rows.groupby(["node", "aspect"], sort=False):
            if not own["lowered"].any():
                continue
            flags, at_s, calm = own["flag"].to_numpy(), hours_of(own) * HOUR_S, is_unstressed(own).to_numpy(dtype=bool)
            first = int(np.argmax(own["lowered"].to_numpy()))
            before = calm & (np.arange(len(own)) < first)
            slice_ = f"{detector}.{node}.{aspect}"
            n_before = len(follow(flags[before], at_s[before], alarm))
            put(figures, f"lowered.false_alarms_before.{slice_}", n_before)
            raised = [one.raised for one in follow(flags, at_s, alarm) if one.raised >= first]
            unstressed = np.flatnonzero(calm & ~(np.arange(len(own)) < first))
            twice = unstressed[1:][flags[unstressed][1:] & flags[unstressed][:-1]]
            for name, places in (("alarm_delay", raised), ("flagged_twice", twice.tolist())):
                n, seconds = (places[0] - first + 1, float(at_s[places[0]] - at_s[first])) if places else (None, None)
                put(figures, f"lowered.{name}_executions.{slice_}", n, "it is never told")
                put(figures, f"lowered.{name}_seconds.{slice_}", seconds, "it is never told")
    return figures


if __name__ == "__main__":
    paths = sys.argv[2:]
    at = paths.index("--")
    print(json.dumps(main(sys.argv[1], paths[:at], paths[at + 1 :]), indent=1))
