"""How a job is cut into vertices."""

from hypothesis import given
from hypothesis import strategies as st

from tasks.jobs.record.scheduler import Vertex, cut
from tasks.jobs.record.templates import Template

MERGED = Template("t", "orders", 4, "", merge="SELECT 1 FROM {partials}")
ALONE = Template("t", "orders", 4, "")
WRITER = Template("t", "orders", 4, "", writes="sales")


def test_shares_are_as_equal_as_whole_parts_allow_and_the_merge_comes_last():
    # seven parts, two a vertex: four vertices of 2, 2, 2 and 1
    assert cut(MERGED, (3, 7), 2, most=8) == [
        Vertex(0, "extract", (3, 2)),
        Vertex(1, "extract", (5, 2)),
        Vertex(2, "extract", (7, 2)),
        Vertex(3, "extract", (9, 1)),
        Vertex(4, "merge", None),
    ]


def test_a_big_job_gets_bigger_vertices_and_not_more_of_them():
    assert [vertex.parts for vertex in cut(ALONE, (0, 7), 1, most=2)] == [(0, 4), (4, 3)]


def test_what_writes_a_database_is_one_vertex():
    assert cut(WRITER, (0, 40), 1, most=8) == [Vertex(0, "extract", (0, 40))]


@given(first=st.integers(0, 63), count=st.integers(1, 64), per=st.integers(1, 8), most=st.integers(1, 8))
def test_every_part_is_read_once_and_in_order(first, count, per, most):
    vertices = cut(MERGED, (first, count), per, most=most)
    *reading, merge = vertices
    assert [vertex.number for vertex in vertices] == list(range(len(vertices)))
    assert (merge.stage, merge.parts) == ("merge", None)
    read = [part for vertex in reading for part in range(vertex.parts[0], sum(vertex.parts))]
    assert read == list(range(first, first + count))
    sizes = [vertex.parts[1] for vertex in reading]
    assert 1 <= len(reading) <= most
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) <= per or len(reading) == most
