"""What sysbench measures, whatever its test."""

from tasks.nodes.aspects import Aspect
from tasks.nodes.tools.facts import MetricFacts, Of

RESOLUTION = "printed in steps of 0.01 ms: 0.00 is less than that, not nothing"


def shared_facts(aspect: Aspect) -> dict[str, MetricFacts]:
    """The metrics that stand in every log of sysbench."""
    of = Of(aspect)
    return {
        "total_time": of.neither("s", "time that the test ran"),
        "total_number_of_events": of.more("", "events of all threads", over="total_time"),
        "latency_min": of.less("s", f"shortest event; {RESOLUTION}"),
        "latency_avg": of.less("s", f"mean event; {RESOLUTION}"),
        "latency_max": of.less("s", f"longest event; {RESOLUTION}"),
        "latency_95p": of.less("s", f"95th percentile of the events; {RESOLUTION}"),
        "latency_sum": of.neither("s", "time of all events, added up over the threads", over="total_time"),
        "fairness_events_avg": of.more("", "events of a thread, on average", over="total_time"),
        "fairness_events_stddev": of.less("", "standard deviation of the threads' events", over="total_time"),
        "fairness_exctime_avg": of.neither("s", "time that a thread spent in events, on average", over="total_time"),
        "fairness_exctime_stddev": of.less("s", "standard deviation of the threads' time in events"),
    }
