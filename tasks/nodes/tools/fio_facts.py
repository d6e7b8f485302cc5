"""What fio measures, for each direction, and of the whole job; Perona's 43 are among them."""

from tasks.nodes.tools.facts import DURATION, MetricFacts, Of

DISK = Of("disk")
DIRECTIONS = ("read", "write")
PERCENTILES = (1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99)
LATENCIES = {
    "slat": "from the request to its submission",
    "clat": "from submission to completion",
    "lat": "from the request to completion",
}
HEADLINES = ("clat", "lat")  # slat is the work of the processor
PERCENT_STEP = 0.01


def percentile_name(percentile: float) -> str:
    """05p, 50p, 99p, 99_5p, 99_95p."""
    return f"{percentile:g}".replace(".", "_").rjust(2, "0") + "p"


def _latencies(direction: str) -> dict[str, MetricFacts]:
    found: dict[str, MetricFacts] = {}
    for kind, what in LATENCIES.items():
        name = f"{direction}_{kind}"
        found |= {
            f"{name}_min": DISK.less("s", f"shortest time of a {direction} {what}"),
            f"{name}_max": DISK.less("s", f"longest time of a {direction} {what}"),
            f"{name}_avg": DISK.less("s", f"mean time of a {direction} {what}", is_headline=kind in HEADLINES),
            f"{name}_stdev": DISK.less("s", f"standard deviation of the time of a {direction} {what}"),
        }
    for percentile in PERCENTILES:
        found[f"{direction}_clat_{percentile_name(percentile)}"] = DISK.less(
            "s", f"{percentile:g} % of the {direction}s completed within this time from submission"
        )
    return found


def _samples(direction: str, kind: str, unit: str, what: str) -> dict[str, MetricFacts]:
    name = f"{direction}_{kind}"
    return {
        f"{name}_min": DISK.more(unit, f"least {what} in an interval of half a second"),
        f"{name}_max": DISK.more(unit, f"most {what} in an interval of half a second"),
        f"{name}_avg": DISK.more(unit, f"mean {what} over these intervals"),
        f"{name}_stdev": DISK.less(unit, f"standard deviation of {what} over these intervals"),
        f"{name}_samples": DISK.neither("", "how many such intervals there were", over=f"{direction}_runtime"),
    }


def _direction(direction: str) -> dict[str, MetricFacts]:
    over = f"{direction}_runtime"
    return {
        f"{direction}_io_size": DISK.more("B", f"bytes of all {direction}s", over=over),
        f"{direction}_bw": DISK.more("B/s", f"bytes of {direction}s a second over the run", is_headline=True),
        f"{direction}_iops": DISK.more("1/s", f"{direction}s a second over the run", is_headline=True),
        f"{direction}_runtime": DISK.neither("s", f"time that {direction}s ran"),
        f"{direction}_total_ios": DISK.more("", f"{direction}s issued", over=over),
        f"{direction}_short_ios": DISK.less("", f"{direction}s that moved less than asked for", over=over),
        f"{direction}_dropped_ios": DISK.less("", f"{direction}s that were dropped", over=over),
        **_latencies(direction),
        **_samples(direction, "bw", "B/s", f"bytes of {direction}s a second"),
        f"{direction}_bw_per": DISK.neither(
            "%", "share of the bytes of all jobs in the group", resolution=PERCENT_STEP
        ),
        **_samples(direction, "iops", "1/s", f"{direction}s a second"),
    }


METRICS: dict[str, MetricFacts] = {
    "number_of_processes": DISK.neither("", "setting: processes or threads"),
    **_direction("read"),
    **_direction("write"),
    "cpu_usr": DISK.neither("%", "processor use of the job in user mode", resolution=PERCENT_STEP),
    "cpu_sys": DISK.neither("%", "processor use of the job in kernel mode", resolution=PERCENT_STEP),
    "cpu_ctx": DISK.neither("", "context switches of the job", over=DURATION),
    "cpu_majf": DISK.neither("", "page faults of the job that needed the disk", over=DURATION),
    "cpu_minf": DISK.neither("", "page faults of the job that did not", over=DURATION),
    "disk_util": DISK.neither(
        "%", "share of the time that the disk was busy (the first, where there are several)", resolution=PERCENT_STEP
    ),
}
