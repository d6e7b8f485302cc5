"""What is gathered while a log is read: values that can be used, and faults for everything that cannot."""

from tasks.nodes.measured import Fault, Measured, ParsedLog
from tasks.nodes.tools.facts import Metrics
from tasks.nodes.tools.lines import Line
from tasks.nodes.tools.numbers import as_number, checked
from tasks.nodes.tools.settings import in_base, plain, spelled
from tasks.nodes.tools.units import SPELLED, TIMES_S

RAW_SHOWN = 500
SHOWN = 40  # of a value, in the reason
LONGEST_S = 1e9  # 31 years: sysbench prints an unset minimum as 18446744073709.55 ms
WAITING = "timeout"  # how long a tool waits for the other side is no part of the work


class Gathering:
    """Values and faults of one log, in its order. The first value of a metric counts; others are faults."""

    def __init__(self, tool: str, metrics: Metrics) -> None:
        """metrics: all that the tool can give."""
        self.tool, self.metrics, self.version = tool, metrics, ""
        self.faults: list[Fault] = []
        self._found: dict[str, Measured] = {}
        self._settings: dict[str, str] = {}

    def __contains__(self, metric: str) -> bool:
        """Whether a value of the metric was found."""
        return metric in self._found

    def value(self, metric: str) -> float | None:
        """The value of a metric as it was written; None if it was not found."""
        found = self._found.get(metric)
        return found.value if found else None

    def base(self, metric: str) -> float | None:
        """The value of a metric in bytes, seconds or bytes a second; None if it was not found."""
        found = self._found.get(metric)
        return in_base(found.value, found.unit) if found else None

    def fault(self, place: int, reason: str, raw: str = "", *, is_failure: bool = False) -> None:
        """Something that could not be used. is_failure: see Fault."""
        self.faults.append(Fault(place, reason, raw[:RAW_SHOWN], is_failure))

    def setting(self, name: str, text: str) -> None:
        """How the tool was called, where that is no metric; the first one of a name counts."""
        if text.strip():
            self._settings.setdefault(name, plain(text))

    def text(self, metric: str, text: str, unit: str, line: Line, *, times: int = 1, has_groups: bool = False) -> None:
        """A value as it stands in a line; see as_number for times and has_groups."""
        self._take(metric, as_number(text, times=times, has_groups=has_groups), text, unit, line.place, line.text)

    def json(self, metric: str, value: object, unit: str, place: int, path: str) -> None:
        """A value of a JSON document that begins at the place. path: of its keys, with dots."""
        self._take(metric, checked(value), str(value), unit, place, f"{path}: {value}")

    def drop(self, *metrics: str) -> None:
        """Forget values that turn out not to be measured."""
        for metric in metrics:
            self._found.pop(metric, None)

    def log(self) -> ParsedLog:
        """All of it. A log without a value and without a fault gets the fault that there is nothing in it."""
        if not self._found and not self.faults:
            self.fault(1, f"no result of {self.tool} in it")
        missing = tuple(metric for metric in self.metrics if metric not in self._found)
        faults = tuple(sorted(self.faults, key=lambda fault: fault.place))
        return ParsedLog(tuple(self._found.values()), self.tool, self.version, missing, faults, self._called())

    def _called(self) -> tuple[tuple[str, str], ...]:
        """All settings by name: those that are metrics, and the others."""
        measured = {
            name: spelled(one.value, one.unit)
            for name, one in self._found.items()
            if self.metrics[name].is_setting and not name.endswith(WAITING)
        }
        return tuple(sorted((measured | self._settings).items()))

    def _take(self, metric: str, value: float | str, shown: str, unit: str, place: int, raw: str) -> None:
        known = SPELLED[self.metrics[metric].unit]
        if metric in self._found:
            reason = "stands there twice; the first counts"
        elif isinstance(value, str):
            reason = value
        elif unit not in known:
            reason = f"has the unknown unit {unit!r}; expected one of {', '.join(sorted(known)) or 'none'}"
        elif value * TIMES_S.get(unit, 0) >= LONGEST_S:
            reason = "is longer than a machine lives"
        else:
            self._found[metric] = Measured(metric, value, unit)
            return
        self.fault(place, f"{metric} ({shown[:SHOWN]}) {reason}", raw)
