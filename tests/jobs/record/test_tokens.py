"""Who gets which tokens: promises, shares of vertices, and spare tokens that may be taken back."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tasks.jobs.record.scheduler import Holder, grant_spare, promise, split

FREE = st.dictionaries(st.sampled_from(["gen3", "gen4", "gen5"]), st.integers(0, 9), min_size=1)


def test_a_promise_follows_the_room_token_by_token():
    # 5 and 2 free: three from the first until both have 2, then one more of it, then one of the second
    assert promise(3, {"old": 2, "new": 5}, 2) == {"new": 3}
    assert promise(5, {"old": 2, "new": 5}, 2) == {"new": 4, "old": 1}


def test_one_vertex_gets_tokens_on_one_sku_only():
    assert promise(5, {"old": 4, "new": 5}, 1) == {"new": 5}
    assert promise(6, {"old": 4, "new": 5}, 1) is None


def test_what_does_not_fit_gets_nothing():
    assert promise(8, {"old": 2, "new": 5}, 2) is None
    assert promise(1, {}, 2) is None


@given(tokens=st.integers(1, 20), free=FREE, n_vertices=st.integers(1, 5))
def test_a_promise_is_whole_and_never_over_the_room(tokens, free, n_vertices):
    before = dict(free)
    given_tokens = promise(tokens, free, n_vertices)
    assert free == before
    largest = sorted(free.values(), reverse=True)[:n_vertices]
    assert (given_tokens is None) == (sum(largest) < tokens)
    if given_tokens is not None:
        assert sum(given_tokens.values()) == tokens
        assert len(given_tokens) <= n_vertices
        assert all(0 < n <= free[sku] for sku, n in given_tokens.items())


def test_shares_of_vertices_are_as_equal_as_whole_tokens_can_be():
    assert split(7, 3) == [3, 2, 2]
    assert split(6, 3) == [2, 2, 2]
    assert split(2, 3) == [1, 1, 0]


@given(tokens=st.integers(0, 100), n_vertices=st.integers(1, 20))
def test_shares_add_up_and_differ_by_one_token_at_most(tokens, n_vertices):
    shares = split(tokens, n_vertices)
    assert (len(shares), sum(shares)) == (n_vertices, tokens)
    assert max(shares) - min(shares) <= 1


def _holder(vertex, job, promised=1, most=10):
    return Holder(vertex, job, promised, most)


def test_spare_tokens_are_given_in_turn_until_the_room_ends():
    holders = [_holder("a/0", "a"), _holder("a/1", "a"), _holder("b/0", "b")]
    assert grant_spare(holders, 5, {"a": 9, "b": 9}) == {"a/0": 2, "a/1": 2, "b/0": 1}


def test_a_job_takes_no_more_spare_tokens_than_it_may_and_a_vertex_no_more_than_a_core():
    # a may take 2: one for each of its vertices; b/0 holds 8 of 10 and takes 2; the rest of the room stays
    holders = [_holder("a/0", "a"), _holder("a/1", "a"), _holder("b/0", "b", promised=8)]
    assert grant_spare(holders, 9, {"a": 2, "b": 9}) == {"a/0": 1, "a/1": 1, "b/0": 2}


def test_without_room_every_spare_token_is_taken_back():
    assert grant_spare([_holder("a/0", "a")], 0, {"a": 9}) == {}
    assert grant_spare([_holder("a/0", "a")], -3, {"a": 9}) == {}


def test_a_job_that_takes_no_spare_tokens_leaves_them_to_others():
    holders = [_holder("a/0", "a"), _holder("b/0", "b")]
    assert grant_spare(holders, 2, {"a": 0, "b": 9}) == {"b/0": 2}
    assert grant_spare(holders, 2, {"b": 9}) == {"b/0": 2}


@st.composite
def _holders(draw):
    jobs = draw(st.lists(st.sampled_from("abc"), max_size=6))
    made = []
    for number, job in enumerate(jobs):
        promised = draw(st.integers(0, 5))
        made.append(Holder(f"{job}/{number}", job, promised, promised + draw(st.integers(0, 5))))
    return made


@given(
    holders=_holders(),
    room=st.integers(-3, 15),
    allowance=st.dictionaries(st.sampled_from("abc"), st.integers(0, 8)),
)
def test_spare_tokens_keep_every_limit_and_no_room_is_wasted(holders, room, allowance):
    before = dict(allowance)
    granted = grant_spare(holders, room, allowance)
    assert allowance == before
    by_job: Counter[str] = Counter()
    for holder in holders:
        more = granted.get(holder.vertex, 0)
        by_job[holder.job] += more
        assert holder.promised + more <= holder.most
    assert all(more > 0 for more in granted.values())
    assert all(more <= allowance.get(job, 0) for job, more in by_job.items())
    left = max(0, room) - sum(granted.values())
    assert left >= 0
    wants = [
        holder
        for holder in holders
        if holder.promised + granted.get(holder.vertex, 0) < holder.most
        and by_job[holder.job] < allowance.get(holder.job, 0)
    ]
    assert left == 0 or not wants
