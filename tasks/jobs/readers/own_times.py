"""Times and dates of tables in microseconds, which is what jobs.runs holds."""

import pyarrow as pa
import pyarrow.compute as pc

from tasks.times import LAST_S

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6}  # nanoseconds do not reach so far


def in_microseconds(times: pa.Array) -> pa.TimestampArray:
    """Dates and times of any unit in microseconds, their zone kept.

    As with epoch seconds, those after the year 9999, and as far before 1970, are cut there, to be refused later."""
    if pa.types.is_date(times.type):
        times = times.cast(pa.timestamp("s" if pa.types.is_date32(times.type) else "ms"))
    if times.type.unit in PER_SECOND:
        far = pa.scalar(int(LAST_S) * PER_SECOND[times.type.unit], pa.int64())
        whole = times.cast(pa.int64())
        cut = pc.max_element_wise(pc.min_element_wise(whole, far), pc.negate(far))
        times = pc.if_else(pc.is_valid(whole), cut, None).cast(times.type)
    return times.cast(pa.timestamp("us", times.type.tz), safe=False)
