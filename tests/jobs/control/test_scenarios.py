"""What is asked for on the command line becomes a scenario, or one line that says what is wrong."""

import pytest

from tasks.errors import BadInput
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.control.scenarios import (
    NAMED,
    CapSpare,
    EvenLoad,
    SetFeature,
    SetStd,
    ShiftAll,
    ShiftSku,
    named_scenario,
    parse_scenario,
)

PARAMS = WhatIfParams()


def test_the_three_scenarios_of_the_paper_have_their_names():
    assert set(NAMED) >= {"no_spare", "newest_sku", "steady_load"}
    assert named_scenario("no_spare", PARAMS).edits == (CapSpare(0),)
    assert named_scenario("newest_sku", WhatIfParams(newest_sku="gen6")).edits == (ShiftAll("gen6"),)
    assert named_scenario("steady_load", PARAMS).edits == (SetStd("cpu_load", 0),)
    assert named_scenario("even_load", PARAMS).edits == (EvenLoad(),)


def test_free_forms_are_read_and_kept_in_order():
    scenario = parse_scenario(
        PARAMS,
        sets=["spare_multiplier=1", "input_bytes = x2", "queue=0"],
        shifts=["gen3:gen5", "all:gen6"],
        stds=["cpu_load=0"],
    )
    assert scenario.edits == (
        CapSpare(1),
        SetFeature("input_bytes", 2, is_factor=True),
        SetFeature("queue_length", 0),
        ShiftSku("gen3", "gen5"),
        ShiftAll("gen6"),
        SetStd("cpu_load", 0),
    )


def test_a_named_scenario_keeps_its_name_and_a_free_one_is_called_by_its_changes():
    assert parse_scenario(PARAMS, scenario="no_spare").name == "no_spare"
    both = parse_scenario(PARAMS, scenario="no_spare", sets=["queue_length=0"])
    assert both.name == str(both) == "spare_multiplier=0, queue_length=0"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "nothing is changed"),
        ({"scenario": "no_spam"}, "expected one of no_spare, newest_sku, steady_load, even_load"),
        ({"sets": ["queue_length"]}, "no '=' between two words; expected NAME=VALUE"),
        ({"sets": ["=3"]}, "no '=' between two words"),
        ({"sets": ["queue_length=many"]}, "'many' is not a number"),
        ({"sets": ["queue_length=nan"]}, "'nan' is not finite"),
        ({"sets": ["input_bytes=x0"]}, "a factor of 0; expected a factor above 0"),
        ({"sets": ["spare_multiplier=-1"]}, "-1 is no cap; expected a number from 0 on, times the tokens requested"),
        ({"sets": ["spare_multiplier=x2"]}, "x2 is no cap"),
        (
            {"sets": ["requested_runtime_s=x2"]},
            "--set requested_runtime_s=x2: a request is no cause: it tells what the user expects of the run; expected "
            "an allocation (tokens, spare_multiplier), a machine",
        ),
        ({"sets": ["requested_memory_bytes=1"]}, "a request is no cause"),
        ({"sets": ["estimated_cost=x2"]}, "an estimate is no cause"),
        ({"sets": ["hour_of_day=3"]}, "the clock is no cause"),
        ({"sets": ["log_ratio_mean=0"]}, "what earlier runs did is no cause"),
        ({"sets": ["queue=1", "queue_length=2"]}, "queue_length is changed twice"),
        ({"scenario": "no_spare", "sets": ["spare_multiple=1"]}, "the cap of spare tokens is changed twice"),
        ({"shifts": ["gen3"]}, "no ':' between two words; expected FROM:TO"),
        ({"shifts": ["gen3:gen3"]}, "from a SKU to itself"),
        ({"stds": ["cpu_load=-1"]}, "a standard deviation of -1; expected 0 or more"),
    ],
)
def test_what_cannot_be_read_is_one_line_that_says_what_was_expected(asked, message):
    with pytest.raises(BadInput) as caught:
        parse_scenario(PARAMS, **asked)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
