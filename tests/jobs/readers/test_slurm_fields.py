"""Single fields of sacct, each value worked out by hand from its manual page."""

from collections.abc import Callable
from functools import partial
from math import isnan, nan

import pytest

from tasks.jobs.readers import slurm as fields

JOB_MEMORY, NODE_MEMORY, CPU_MEMORY = (partial(fields.requested_memory_bytes, per=per) for per in ("", "n", "c"))

KIB, MIB, GIB = 2**10, 2**20, 2**30


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (fields.duration_s, "00:00:16", 16),
        (fields.duration_s, "10-13:27:06", 10 * 86_400 + 13 * 3600 + 27 * 60 + 6),
        (fields.duration_s, "01:02.345", 62.345),  # TotalCPU of a short job
        (fields.duration_s, "2-00:01:02.5", 172_862.5),
        (fields.duration_s, "UNLIMITED", nan),
        (fields.duration_s, "Partition_Limit", nan),
        (fields.duration_s, "INVALID", nan),
        (fields.count, "64", 64),
        (fields.count, "", nan),
        (fields.nodes, "1.50K", 1536),
        (fields.memory_bytes, "123456K", 123_456 * KIB),
        (fields.memory_bytes, "1.50G", 1.5 * GIB),
        (fields.memory_bytes, "0", 0),
        (JOB_MEMORY, "64G", 64 * GIB),
        (JOB_MEMORY, "4000", 4000 * MIB),
        (JOB_MEMORY, "4000Mc", nan),
        (NODE_MEMORY, "31000Mn", 31_000 * MIB),
        (NODE_MEMORY, "0n", nan),  # all that the node has
        (CPU_MEMORY, "4000Mc", 4000 * MIB),
        (CPU_MEMORY, "2147486648Mn", 3000 * MIB),  # 2^31 + 3000: the flag bit "per CPU" printed along
        (NODE_MEMORY, "2147486648Mn", nan),
        (NODE_MEMORY, "4294967294Mn", nan),  # 0xfffffffe: not set
        (NODE_MEMORY, "2.00Pn", nan),  # the flag bit, rounded: the amount is lost
        (fields.tres_cpus, "billing=12,cpu=12,gres/gpu=2,mem=31000M,node=1", 12),
        (fields.tres_memory_bytes, "cpu=64,mem=62.50G,node=8", 64_000 * MIB),
        (fields.tres_memory_bytes, "cpu=8,node=1", nan),
        (fields.tres_cpus, "", nan),
    ],
)
def test_a_field_says(parse: Callable[[str], float], text: str, value: float) -> None:
    assert parse(text) == pytest.approx(value, nan_ok=True)
    assert isnan(parse(text)) == isnan(value)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("COMPLETED", "completed"),
        ("FAILED", "failed"),
        ("NODE_FAIL", "failed"),
        ("OUT_OF_MEMORY", "failed"),
        ("CANCELLED by 380693", "cancelled"),
        ("CANCELLED+", "cancelled"),
        ("PREEMPTED", "cancelled"),
        ("TIMEOUT", "timeout"),
        ("DEADLINE", "timeout"),
        ("RUNNING", "running"),
        ("SUSPENDED", "running"),
        ("PENDING", "pending"),
        ("REQUEUED", "pending"),
        ("EXPEDITING", "unknown"),  # of a Slurm to come
        ("", "unknown"),
    ],
)
def test_a_state_has_a_status(text: str, status: str) -> None:
    assert fields.status(text, {}) == status


@pytest.mark.parametrize(
    ("parse", "text", "objection"),
    [
        (fields.duration_s, "25 min", "is not a duration"),
        (fields.duration_s, "-00:01:00", "is not a duration"),
        (fields.count, "-8", "is not a whole number"),
        (fields.count, "٣", "is not a whole number"),
        (fields.nodes, "many", "is not a number of nodes"),
        (fields.memory_bytes, "4000X", "is not an amount of memory"),
        (NODE_MEMORY, "1e9Mn", "is not an amount of memory"),
        (fields.tres_cpus, "cpu", "is not a list of resources"),
        (fields.tres_cpus, "cpu=all", "has no number for cpu="),
        (fields.tres_memory_bytes, "mem=all", "has no amount for mem="),
        (partial(fields.status, mapped={}), "0:0", "is not a job state"),
    ],
)
def test_nonsense_is_refused_with_what_was_expected(parse: Callable[[str], object], text: str, objection: str) -> None:
    with pytest.raises(ValueError, match=objection):
        parse(text)
