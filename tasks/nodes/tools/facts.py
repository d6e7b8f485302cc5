"""What is known of a metric before any log is read: unit, orientation, what it adds up over, where it is written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tasks.nodes.aspects import Aspect

SETTING = "setting: "  # how `what` begins where a metric is one
DURATION = "duration"  # of the execution, where the log itself has no time to divide by


@dataclass(frozen=True)
class MetricFacts:
    """Facts of one metric.

    unit: canonical (a key of parsing.SPELLED). higher_is_better: None where neither is better: settings, durations, CPU
    use; for a cumulative metric, of the rate that it becomes. is_cumulative_over: the metric, or "duration", that it
    grows with and is to be divided by; None if it does not grow (Perona's rate normalisation). is_headline: whether it
    is one of the rates and latencies that the tool exists to report. resolution: the step, in the unit, that all output
    of the tool is rounded to, whatever the size of the value; 0 where digits are kept instead. at: where the tool
    writes it, a label of its text or a path of its JSON, with the unit that holds there; the first that a log has
    counts."""

    unit: str
    higher_is_better: bool | None
    is_cumulative_over: str | None
    aspect: Aspect
    what: str
    is_headline: bool = False
    resolution: float = 0.0
    at: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    @property
    def is_setting(self) -> bool:
        """Whether it says how the tool was called, not what it measured."""
        return self.what.startswith(SETTING)


Metrics = Mapping[str, MetricFacts]


@dataclass(frozen=True)
class Of:
    """Writes facts of one aspect in short. further: at, is_headline, resolution."""

    aspect: Aspect

    def more(self, unit: str, what: str, over: str | None = None, **further: Any) -> MetricFacts:
        """A metric of which more is better."""
        return MetricFacts(unit, True, over, self.aspect, what, **further)

    def less(self, unit: str, what: str, over: str | None = None, **further: Any) -> MetricFacts:
        """A metric of which less is better."""
        return MetricFacts(unit, False, over, self.aspect, what, **further)

    def neither(self, unit: str, what: str, over: str | None = None, **further: Any) -> MetricFacts:
        """A setting, a duration, or a use of resources: no better or worse."""
        return MetricFacts(unit, None, over, self.aspect, what, **further)
