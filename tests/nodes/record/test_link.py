"""The relay that delays a link."""

import socket

import pytest

from tasks.nodes.record.link import MOST_WAITING, Late, carry


def test_a_packet_is_due_when_its_delay_is_over_and_not_before():
    late = Late(0.005)
    late.put(b"one", 1.0)
    late.put(b"two", 1.002)
    assert late.next_s() == pytest.approx(1.005)
    assert late.due(1.004) == []
    assert late.due(1.006) == [b"one"]
    assert late.due(2.0) == [b"two"]
    assert late.next_s() is None


def test_a_delay_that_shrinks_lets_no_packet_overtake_another():
    late = Late(0.1)
    late.put(b"one", 1.0)
    late.delay_s = 0.001
    late.put(b"two", 1.01)
    assert late.due(1.05) == []
    assert late.due(1.1) == [b"one", b"two"]


def test_a_full_queue_takes_no_more_until_it_empties():
    late = Late(1.0)
    for _ in range(MOST_WAITING):
        late.put(b"x", 0.0)
    assert late.is_full
    late.due(2.0)
    assert not late.is_full


@pytest.mark.parametrize("is_shut", [False, True])
def test_packets_cross_in_both_directions_in_their_order_and_a_device_that_takes_none_loses_them(is_shut):
    (ours, one), (theirs, other) = (socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2))
    for end in (one, other):
        end.setblocking(False)
    for packet in (b"1", b"2", b"3"):
        ours.send(packet)
    theirs.send(b"back")
    if is_shut:
        other.shutdown(socket.SHUT_WR)
    carry({one.fileno(): (other.fileno(), Late(0)), other.fileno(): (one.fileno(), Late(0))})
    assert [theirs.recv(10) for _ in range(3)] == ([b""] * 3 if is_shut else [b"1", b"2", b"3"])
    assert ours.recv(10) == b"back"
    for end in (ours, one, theirs, other):
        end.close()
