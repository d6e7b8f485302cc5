"""What sysbench measures, whatever its test."""

from tasks.nodes.aspects import Aspect
from tasks.nodes.tools.facts import MetricFacts, Of

ROUNDED = "printed in steps of 0.01 ms: 0.00 is less than that, not nothing"
LATENCY_STEP_S, SECONDS_STEP_S = 0.01e-3, 0.0001  # what the text of every version is rounded to
EVENTS_AVG_STEP, DEVIATION_STEP = 0.0001, 0.01


def shared_facts(aspect: Aspect, *, is_latency_headline: bool) -> dict[str, MetricFacts]:
    """The metrics that stand in every log of sysbench.

    is_latency_headline: whether an event takes so long that its latency is more than what is rounded away."""
    of = Of(aspect)
    return {
        "total_time": of.neither("s", "time that the test ran", resolution=SECONDS_STEP_S),
        "total_number_of_events": of.more("", "events of all threads", over="total_time"),
        "latency_min": of.less("s", f"shortest event; {ROUNDED}", resolution=LATENCY_STEP_S),
        "latency_avg": of.less(
            "s", f"mean event; {ROUNDED}", resolution=LATENCY_STEP_S, is_headline=is_latency_headline
        ),
        "latency_max": of.less("s", f"longest event; {ROUNDED}", resolution=LATENCY_STEP_S),
        "latency_95p": of.less(
            "s", f"95th percentile of the events; {ROUNDED}", resolution=LATENCY_STEP_S, is_headline=is_latency_headline
        ),
        "latency_sum": of.neither(
            "s", "time of all events, added up over the threads", over="total_time", resolution=LATENCY_STEP_S
        ),
        "fairness_events_avg": of.more(
            "", "events of a thread, on average", over="total_time", resolution=EVENTS_AVG_STEP
        ),
        "fairness_events_stddev": of.less(
            "", "standard deviation of the threads' events", over="total_time", resolution=DEVIATION_STEP
        ),
        "fairness_exctime_avg": of.neither(
            "s", "time that a thread spent in events, on average", over="total_time", resolution=SECONDS_STEP_S
        ),
        "fairness_exctime_stddev": of.less(
            "s", "standard deviation of the threads' time in events", resolution=DEVIATION_STEP
        ),
    }
