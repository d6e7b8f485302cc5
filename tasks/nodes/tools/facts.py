"""What is known of a metric before any log is read: unit, orientation, what it adds up over, aspect."""

from collections.abc import Mapping
from dataclasses import dataclass

from tasks.nodes.aspects import Aspect

SETTING = "setting: "  # how `what` begins where a metric is one
DURATION = "duration"  # of the execution, where the log itself has no time to divide by


@dataclass(frozen=True)
class MetricFacts:
    """Facts of one metric.

    unit: canonical (a key of units.SPELLED). higher_is_better: None where neither is better: settings, durations, CPU
    use; for a cumulative metric, of the rate that it becomes. is_cumulative_over: the metric, or "duration", that it
    grows with and is to be divided by; None if it does not grow (Perona's rate normalisation). is_headline: whether it
    is one of the rates and latencies that the tool exists to report. resolution: the step, in the unit, that the tool's
    text rounds to, whatever the size of the value; 0 where it keeps digits instead."""

    unit: str
    higher_is_better: bool | None
    is_cumulative_over: str | None
    aspect: Aspect
    what: str
    is_headline: bool = False
    resolution: float = 0.0

    @property
    def is_setting(self) -> bool:
        """Whether it says how the tool was called, not what it measured."""
        return self.what.startswith(SETTING)


Metrics = Mapping[str, MetricFacts]


@dataclass(frozen=True)
class Of:
    """Writes facts of one aspect in short."""

    aspect: Aspect

    def more(
        self, unit: str, what: str, over: str | None = None, *, is_headline: bool = False, resolution: float = 0.0
    ) -> MetricFacts:
        """A metric of which more is better."""
        return MetricFacts(unit, True, over, self.aspect, what, is_headline, resolution)

    def less(
        self, unit: str, what: str, over: str | None = None, *, is_headline: bool = False, resolution: float = 0.0
    ) -> MetricFacts:
        """A metric of which less is better."""
        return MetricFacts(unit, False, over, self.aspect, what, is_headline, resolution)

    def neither(self, unit: str, what: str, over: str | None = None, *, resolution: float = 0.0) -> MetricFacts:
        """A setting, a duration, or a use of resources: no better or worse."""
        return MetricFacts(unit, None, over, self.aspect, what, resolution=resolution)
