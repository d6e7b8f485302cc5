"""How `whorl demo` shows a workload: which recording was held out, what it was named, how sure, and why."""

from typing import TYPE_CHECKING

from flows.shown import clean, counted
from flows.tables import show_facts
from tasks.quantities import share, times

if TYPE_CHECKING:
    from flows.workload_demo import WorkloadTold

UNKNOWN = "an unknown workload"


def show_workload(told: "WorkloadTold") -> None:
    """Print what the model made of the run that it has never seen, and the counters and phases that say so."""
    is_right = told["workload"] == told["label"]
    named = f"{told['workload']}, a known workload" if told["workload"] else UNKNOWN
    known = f"{counted(told['n_runs'], 'run')} of {counted(told['n_workloads'], 'workload')}"
    others = counted(told["n_held_out"], "other run")
    show_facts(
        {
            "held-out run": told["run_id"],
            "named": f"{named}, {share(told['confidence'])} sure",
            "label": told["label"] + (", as named" if is_right else ", so that is wrong"),
            "nearest": ", ".join(
                f"{near['workload']} at {times(near['distance'])} the usual distance" for near in told["nearest"]
            ),
            "model": f"learned {known}; right for {share(told['accuracy'])} of {others} that it has not seen",
        }
    )
    for reason in told["reasons"]:
        print(f"- {clean(reason)}")
