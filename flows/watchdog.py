"""The automation that marks dead runs: a run whose worker was killed with it would stay Running for ever."""

from datetime import timedelta

from prefect.client.schemas.objects import StateType
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture

from flows.forms import TAG

NAME = "whorl: mark runs that stopped without a word"
SILENCE_S = 90  # three heartbeats, which come every 30 s
HEARTBEAT = "prefect.flow-run.heartbeat"
LAST_WORDS = [
    "Completed",
    "Failed",
    "Cancelled",
    "Crashed",
    "Cancelling",
    "AwaitingRetry",
    "Paused",
    "Suspended",
]


def dead_run_automation(silence_s: float = SILENCE_S) -> AutomationCore:
    """Set a whorl run to Crashed if after a heartbeat neither another one nor its end comes within silence_s."""
    return AutomationCore(
        name=NAME,
        description="A run whose process and worker were killed at once cannot say so. It becomes Crashed, so that it "
        "can be retried; it then continues after its last finished step.",
        tags=[TAG],
        trigger=EventTrigger(
            match={"prefect.resource.id": "prefect.flow-run.*"},
            match_related={"prefect.resource.id": f"prefect.tag.{TAG}", "prefect.resource.role": "tag"},
            for_each={"prefect.resource.id"},
            after={HEARTBEAT},
            expect={HEARTBEAT, *(f"prefect.flow-run.{state}" for state in LAST_WORDS)},
            posture=Posture.Proactive,
            threshold=1,
            within=timedelta(seconds=silence_s),
        ),
        actions=[
            ChangeFlowRunState(state=StateType.CRASHED, name="Crashed", message=f"No heartbeat for {silence_s:g} s")
        ],
    )
