"""Names as people and schedulers submit them: with dates, counters, hashes and paths around the job's own words."""

from datetime import date, timedelta

import numpy as np

FIRST_DAY = date(2026, 9, 1)  # the first day of every campaign's schedule
HASH_BYTES = 6
UUID_CUTS = (8, 12, 16, 20)


def _hex(count: int, rng: np.random.Generator) -> str:
    return rng.bytes(count).hex()


def _uuid(rng: np.random.Generator) -> str:
    digits = _hex(16, rng)
    return "-".join(digits[low:high] for low, high in zip((0, *UUID_CUTS), (*UUID_CUTS, 32), strict=True))


def submitted_name(name: str, style: int, counter: int, at_days: float, path: str, rng: np.random.Generator) -> str:
    """The job's name as one run submits it, in one of seven styles.

    at_days: schedule time in days since the campaign's first day; path: the run's first input under /data.
    """
    day = FIRST_DAY + timedelta(days=int(at_days))
    hour, minute = int(at_days * 24) % 24, int(at_days * 1440) % 60
    return (
        f"{name}_{day}_r{counter:04d} /data/{path}",
        f"{name}.{day:%Y%m%d}T{hour:02d}{minute:02d} #{counter}",
        f"{name} run={counter} dt={day}",
        f"{name}-{_hex(HASH_BYTES, rng)}",
        f"{name}[{day:%Y/%m/%d}] s3://lake/h={hour:02d}/{path}",
        f"{name}_{day:%Y%m%d}{hour:02d}{minute:02d}",
        f"{name}:{_uuid(rng)}",
    )[style]
