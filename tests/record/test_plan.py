"""Orders that are mixed, and the digests that campaigns are told apart by."""

import random
from itertools import pairwise
from operator import itemgetter

from hypothesis import given
from hypothesis import strategies as st

from tasks.record.plan import digest_of, mixed


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(0, 99))
def test_a_mixed_order_holds_every_case_and_repeats_a_subject_only_where_there_is_no_other_way(names, seed):
    cases = list(enumerate(names))
    order = mixed(cases, itemgetter(1), random.Random(seed))
    assert sorted(order) == cases
    repeats = sum(a[1] == b[1] for a, b in pairwise(order))
    most = max((names.count(name) for name in names), default=0)
    assert repeats == max(0, most - (len(names) - most) - 1)


def test_what_ran_before_does_not_come_first_and_a_seed_decides_the_rest():
    cases = list("aabbcc")
    orders = {tuple(mixed(cases, str, random.Random(seed), "a")) for seed in range(20)}
    assert len(orders) > 5
    assert {order[0] for order in orders} == {"b", "c"}
    assert mixed(cases, str, random.Random(3)) == mixed(cases, str, random.Random(3))


def test_a_digest_is_the_first_sixteen_digits_of_sha_256():
    assert digest_of("abc") == "ba7816bf8f01cfea"  # FIPS 180-2, B.1
