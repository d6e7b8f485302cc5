"""What a row of verdicts about one node and aspect amounts to: healthy, suspected, confirmed, cleared.

    healthy    → suspected  when `flagged` of the last `last` executions, the newest among them, are flagged
    suspected  → confirmed  when `confirm` of the executions after that are flagged as well
    suspected, confirmed → cleared  when `clear` executions in a row are not flagged
    cleared    → suspected  by the same rule as before; executions before the clearing ones no longer count

The state after an execution depends on that and earlier ones alone, so looking again changes nothing."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from tasks.nodes.fingerprint.alarm_params import AlarmParams
from tasks.nodes.type_tables import Bools, Floats

State = Literal["healthy", "suspected", "confirmed", "cleared"]
GOING_ON: frozenset[State] = frozenset({"suspected", "confirmed"})
DAY_S = 86_400.0
NEVER = -1


@dataclass(frozen=True)
class Episode:
    """One alarm, by places in the row of executions, from 0.

    first: the first flag behind it. raised: the execution that raised it. confirmed, cleared: NEVER if none has."""

    first: int
    raised: int
    confirmed: int = NEVER
    cleared: int = NEVER

    @property
    def state(self) -> State:
        """Of the alarm."""
        if self.cleared != NEVER:
            return "cleared"
        return "suspected" if self.confirmed == NEVER else "confirmed"


@dataclass(frozen=True)
class Followed:
    """states: after each execution. episodes: the alarms in their order; the last one may be going on."""

    states: tuple[State, ...]
    episodes: tuple[Episode, ...]


def follow(is_flagged: Bools, at_s: Floats, params: AlarmParams) -> Followed:
    """Go through the executions of one node and aspect that count.

    is_flagged: (n,) in time order. at_s: (n,) their times in seconds, NaN where unknown: those are never too old."""
    states: list[State] = []
    episodes: list[Episode] = []
    window: deque[int] = deque(maxlen=params.last)
    state: State = "healthy"
    n_fresh = n_clean = 0  # since the alarm was raised: flagged ones, and those without a flag in a row
    for at, flagged in enumerate(is_flagged.tolist()):
        if state in GOING_ON:
            n_clean, n_fresh = (0, n_fresh + 1) if flagged else (n_clean + 1, n_fresh)
            if n_clean >= params.clear:
                state, episodes[-1] = "cleared", replace(episodes[-1], cleared=at)
                window = deque(range(at - n_clean + 1, at + 1), maxlen=params.last)
            elif state == "suspected" and n_fresh >= params.confirm:
                state, episodes[-1] = "confirmed", replace(episodes[-1], confirmed=at)
        else:
            window.append(at)
            behind = _flags_behind(window, is_flagged, at_s, params) if flagged else []
            if len(behind) >= params.flagged and at + 1 >= params.min_executions:
                state, n_fresh, n_clean = "suspected", 0, 0
                episodes.append(Episode(behind[0], at))
        states.append(state)
    return Followed(tuple(states), tuple(episodes))


def _flags_behind(window: Iterable[int], is_flagged: Bools, at_s: Floats, params: AlarmParams) -> list[int]:
    """The places of the flagged executions of the window that are not too long before its newest one."""
    places = list(window)
    limit_s = params.window_days * DAY_S
    return [one for one in places if is_flagged[one] and not at_s[places[-1]] - at_s[one] > limit_s]
