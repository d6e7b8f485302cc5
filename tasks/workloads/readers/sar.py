"""What `sar` prints, line by line as `sadf -d` would have printed it.

A table of `sar` begins with a clock and the names of its columns; the date stands in the banner of the file alone.
Clocks have 12 or 24 hours, decimals a point or a comma, dates the order of their country; means at the end ("Average:",
"Durchschn.:", "Moyenne :") are no samples. A clock that falls back by most of a day has passed midnight."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

BANNER = re.compile(r"^(?:Linux|SunOS|AIX|Darwin) \S+ +\((?P<host>[^)]*)\)\s+(?P<date>\S+)")
CLOCK = re.compile(r"^(\d{1,2})[:時h](\d\d)[:分m](\d\d)[秒s]?(?:\s+([AaPp])\.?\s?[Mm]\.?)?(?=\s)")
RESTART = re.compile(r"\bLINUX RESTART\b")
MAGIC = (b"\x96\xd5", b"\xd5\x96")
DOCUMENT = re.compile(rb"\s*(\{\s*\"sysstat\"|<\?xml[^>]*>\s*(<!DOCTYPE sysstat|<sysstat))")
NUMBER = re.compile(r"^-?\d+(?:[.,]\d+)?$")
COMMA = re.compile(rb"\s\d+,\d+\s")  # where decimals have commas, days stand before months
DEVICE = re.compile(r"^[A-Z]+$")
OF_EACH_CPU = "CPU*"  # as sadf -d heads an interrupt of all processors and of each of them
MIDNIGHT_S = 6 * 3600  # a clock that falls by more has passed midnight; by less it was set back
NOON, CENTURY, MONTHS, DATE_PARTS = 12, 2000, 12, 3
NEIGHBOURS = {("UID", "PID"): "pidstat's counters of processes", ("avg-cpu:",): "what iostat prints"}
UNREADABLE = ("BUS",)  # sections of words, not of numbers


def is_sar(head: bytes) -> bool:
    """Whether a file begins as `sar` does: its banner, and a table that a clock heads."""
    banner, *lines = head.decode("utf-8", "replace").lstrip("\ufeff\r\n").splitlines() or [""]
    tables = [line for line in lines if line.strip()]
    return bool(BANNER.match(banner) and tables and (CLOCK.match(tables[0]) or RESTART.search(tables[0])))


def is_other(head: bytes) -> bool:
    """Whether a file is sysstat's own, as `sar -o` and the daily sa26 are, or JSON or XML of `sadf`."""
    return head.startswith(MAGIC) or bool(DOCUMENT.match(head))


def neighbour(head: bytes) -> str:
    """Whose output a file holds that begins with sar's banner and is none of sar's; empty: nobody's."""
    banner, *lines = head.decode("utf-8", "replace").lstrip("\ufeff\r\n").splitlines() or [""]
    words = [set(line.split()) for line in lines] if BANNER.match(banner) else []
    return next((what for heads, what in NEIGHBOURS.items() if any(set(heads) <= line for line in words)), "")


@dataclass
class SarLines:
    """Turns the lines of a file, in their order, into those of `sadf -d`. head: its beginning."""

    head: bytes
    host: str = ""
    day: date | None = None
    columns: tuple[str, ...] = ()
    is_last: bool = False  # whether the device stands behind the values
    before: dict[tuple[str, ...], tuple[int, int]] = field(default_factory=dict)  # of each table: clock and days

    def as_sadf(self, line: str) -> str:
        """A header, a line of values or of a restart; empty for what is neither."""
        if banner := BANNER.match(line):
            self.host, self.columns, self.before = banner["host"], (), {}
            self.day = day_of(banner["date"], is_month_first=not COMMA.search(self.head))
            return ""
        clock = CLOCK.match(line)
        words = line[clock.end() :].split() if clock else []
        if clock is None or not words or words[0] == "COM":
            return ""
        if RESTART.search(line):
            self.before = {}
            return f"{self.host};-1;{self._time(clock, ())};LINUX-RESTART"
        if not any(map(NUMBER.match, words)):
            return self._header(words)
        fields = words
        if self.is_last:  # a mount point may hold blanks
            values = len(self.columns) - 1
            fields = [" ".join(words[values:]), *words[:values]]
        if not self.columns or self.columns[0] in UNREADABLE:
            return ""
        return ";".join([self.host, "", self._time(clock, self.columns), *(cell.replace(",", ".") for cell in fields)])

    def _header(self, words: Sequence[str]) -> str:
        self.is_last = bool(DEVICE.match(words[-1])) and not DEVICE.match(words[0])
        columns = [words[-1], *words[:-1]] if self.is_last else list(words)
        self.columns = (columns[0], OF_EACH_CPU) if columns[:2] == ["INTR", "all"] else tuple(columns)
        if self.columns[0] in UNREADABLE:
            return ""
        return ";".join(["# hostname", "interval", "timestamp", *self.columns])

    def _time(self, clock: re.Match[str], table: tuple[str, ...]) -> str:
        hour, minute, second = (int(clock[at]) for at in (1, 2, 3))
        if clock[4]:
            hour = hour % NOON + (NOON if clock[4] in "Pp" else 0)
        seconds = 3600 * hour + 60 * minute + second
        last, days = self.before.get(table, (seconds, 0))
        days += last - seconds > MIDNIGHT_S
        self.before[table] = seconds, days
        if self.day is None:
            return f"{hour:02}:{minute:02}:{second:02}"  # which day, nobody says
        return f"{self.day + timedelta(days=days)} {hour:02}:{minute:02}:{second:02}"


def day_of(text: str, *, is_month_first: bool) -> date | None:
    """The date of a banner; None for what is none. is_month_first: of two numbers that may both be a month."""
    numbers = [int(digits) for digits in re.findall(r"\d+", text)]
    if len(numbers) != DATE_PARTS:
        return None
    if numbers[0] >= CENTURY:
        year, month, day = numbers
    else:
        month, day, year = numbers
        if "." in text or "-" in text or (not is_month_first and day <= MONTHS) or month > MONTHS:
            month, day = day, month
    try:
        return date(year if year >= CENTURY else CENTURY + year, month, day)
    except ValueError:
        return None
