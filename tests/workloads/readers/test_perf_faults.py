"""Broken output of perf: each line that cannot be used is refused with its reason, and nothing else is lost."""

import pytest

from tasks.errors import BadInput

HEAD = "# started on Sat Nov 21 11:15:08 2026\n\n"
GOOD = [f"     {at}.000000000,10,,cycles,1000,100.00,," for at in (1, 2, 3)]
BROKEN = {
    "no time": ("garbage", "no time at the beginning"),
    "cut off": ("     2.000000000,10,,faults", "the line is cut off"),
    "a time alone": ("     2.000000000", "no count with an event"),
    "a metric alone": ("     2.000000000,,,,,,0.51,insn per cycle", "no count with an event"),
    "a share that is none": ("     2.000000000,10,,faults,1000,x,,", "no run time with its share"),
    "a word for a count": ("     2.000000000,ten,,faults,1000,100.00,,", "no count with an event"),
    "the summary": ("         summary,30,,cycles,1000,100.00,,", "the summary at the end"),
    "twice": (GOOD[1], "the event stands twice"),
    "malformed JSON": ('{"interval" : 2.0, "counter', "malformed JSON"),
    "JSON without an event": ('{"interval" : 2.0}', "no event"),
    "JSON without an interval": ('{"counter-value" : "1", "event" : "e"}', "no interval"),
    "a count of 400 digits": (f"     2.000000000,{'9' * 400},,faults,1000,100.00,,", "the count '9999"),
    "JSON with a count of 400 digits": (
        f'{{"interval" : 2.0, "counter-value" : {"9" * 400}, "event" : "e"}}',
        "the count '9999",
    ),
    "JSON with a time of 400 digits": (
        f'{{"interval" : {"9" * 400}, "counter-value" : "1", "event" : "e"}}',
        "interval or pcnt-running is no number",
    ),
    "JSON nested too deeply": ('{"interval" : ' + "[" * 5000, "malformed JSON"),
    "a NUL byte": ("     2.000\x00000000,10,,faults,1,1.0,,", "a NUL byte"),
}


@pytest.mark.parametrize(("line", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_line_is_refused_alone(found_in, line, reason):
    found = found_in(HEAD + "\n".join([GOOD[0], GOOD[1], line, GOOD[2]]) + "\n")
    assert found.column("perf.cycles") == [10, 10, 10]
    assert (len(found.reasons), found.n_read) == (1, 4)
    assert found.reasons[0].startswith(reason)
    assert found.refused["place"].to_list() == [5]


def test_output_without_intervals_is_refused_in_one_line(found_in):
    with pytest.raises(BadInput, match="no interval in it; expected the output of perf stat -I 1000"):
        found_in("# started on Sat Nov 21 11:15:08 2026\n\n0.83,msec,cpu-clock,834769,100.00,0.008,CPUs utilized\n")


def test_events_that_no_machine_supports_leave_no_run_but_every_line(found_in):
    lines = [line.replace(",10,", ",<not supported>,") for line in GOOD]
    found = found_in(HEAD + "\n".join(lines) + "\n")
    assert (found.runs, found.reasons) == ([], ["this machine does not support the event"] * 3)
