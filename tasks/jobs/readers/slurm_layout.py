"""Which fields the lines of `sacct --parsable2` hold: from the header line, or from a setting where there is none."""

from collections import Counter
from dataclasses import dataclass

from tasks.errors import BadInput, BadSetting, quoted

BAR = "|"
STEP_MARK = "."  # 123.batch, 123.0, 123.extern
IDS = ("JobIDRaw", "JobID")  # the raw id first: it is unique to a task of a job array
NAME = "JobName"
WANTED = (
    *IDS,
    NAME,
    *("Cluster", "User", "UID", "Partition", "State"),
    *("Submit", "Eligible", "Start", "End", "Elapsed", "ElapsedRaw", "Timelimit", "TimelimitRaw"),
    *("NCPUS", "AllocCPUS", "ReqCPUS", "NNodes", "AllocNodes", "ReqNodes"),
    *("ReqMem", "ReqTRES", "AllocTRES", "MaxRSS", "TotalCPU", "CPUTimeRAW"),
)
CANONICAL = {name.lower(): name for name in WANTED}  # sacct takes field names in any case
NEEDED = (IDS, ("Start",), ("End", "Elapsed", "ElapsedRaw"))


@dataclass(frozen=True)
class Layout:
    """How the lines of a log are built: the fields in their order, as sacct names them."""

    fields: tuple[str, ...]
    header: str | None
    has_trailing_bar: bool  # `sacct --parsable`

    @property
    def n_bars(self) -> int:
        """Bars in a line whose fields hold none."""
        return len(self.fields) - 1 + self.has_trailing_bar

    @property
    def name_is_last(self) -> bool:
        """Whether surplus bars can only belong to the job's name, which sacct does not escape."""
        return self.fields[-1] == NAME


def sacct_fields_in(line: str) -> set[str]:
    """The fields of sacct that a header line names; empty for a line that does not name a job id."""
    names = set(_canonical(line.split(BAR)))
    return set() if names.isdisjoint(IDS) else names & set(WANTED)


def find_layout(path: str, lines: list[str], sacct_fields: str) -> Layout:
    """The layout that a header line tells, or else the fields of the setting read.sacct_fields.

    lines: the first lines of the log, not blank. Raises BadInput where fields are missing or do not fit."""
    if BAR not in lines[0]:
        raise BadInput(path, "no bars (|) between fields", "output of sacct --parsable2", "run sacct with --parsable2")
    return _from_header(path, lines) if sacct_fields_in(lines[0]) else _from_setting(path, lines, sacct_fields)


def _from_header(path: str, lines: list[str]) -> Layout:
    header = lines[0]
    layout = Layout(_canonical(header.removesuffix(BAR).split(BAR)), header, header.endswith(BAR))
    if lacking := _lacking(layout.fields):
        raise BadInput(path, f"the header lacks {lacking}", "JobID, Start and End", "add it to sacct --format")
    data = [line for line in lines if line != header]
    if data and not any(line.count(BAR) >= layout.n_bars for line in data):
        raise _misfit(path, data, layout)
    return layout


def _from_setting(path: str, lines: list[str], sacct_fields: str) -> Layout:
    names = [name.partition("%")[0] for name in sacct_fields.replace(BAR, ",").strip(", ").split(",")]
    has_trailing_bar = all(line.endswith(BAR) and line.count(BAR) >= len(names) for line in lines)
    layout = Layout(_canonical(names), None, has_trailing_bar)
    if lacking := _lacking(layout.fields):
        raise BadSetting(f"read.sacct_fields lacks {lacking}; list the fields that sacct --format was given")
    if _commonest_bars(lines) != layout.n_bars:
        raise _misfit(path, lines, layout)
    return layout


def _canonical(names: list[str]) -> tuple[str, ...]:
    return tuple(CANONICAL.get(name.strip().lower(), name.strip()) for name in names)


def _lacking(fields: tuple[str, ...]) -> str:
    return next((" or ".join(some) for some in NEEDED if set(some).isdisjoint(fields)), "")


def _commonest_bars(lines: list[str]) -> int:
    return Counter(line.count(BAR) for line in lines).most_common(1)[0][0]


def _misfit(path: str, lines: list[str], layout: Layout) -> BadInput:
    n_fields = _commonest_bars(lines) + 1 - layout.has_trailing_bar
    listed = "read.sacct_fields" if layout.header is None else "its header"
    return BadInput(
        path,
        f"lines of {n_fields} fields, but {listed} names {len(layout.fields)}",
        f"the fields {quoted(layout.fields)}",
        "export with a header (sacct --parsable2, no --noheader) or list the fields in read.sacct_fields",
    )
