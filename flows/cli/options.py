"""Commands from verbs. A verb is a function of an invocation, and its docstring ends with a line for each option:

    PATH: Job logs: files or folders                                 an argument
    --top (1..): How many jobs                                       an option with a bound
    --exceeds SECONDS (0..): Chance that a run takes longer          the same, whose value is called SECONDS in the help
    --minutes (float .record.minutes): How long jobs are submitted   one that sets a setting, here <word>.record.minutes
    --source, --dry-run                                              some that verbs share (SHARED)

Those that set no setting are the arguments of the function, in its order, with its types and defaults. A verb yields
the object that --json prints; what it does after that prints the same for people."""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

from flows.cli import invocation
from flows.cli.invocation import Invocation, offered
from flows.cli.output import show_json
from tasks import choices

SHARED = """
--source, -s NAME: Source of the rows; not needed while there is only one
--seed (0..2147483647): Seed of everything random
--out DIR: Write a page with figures, and each figure as PNG, there
--normalisation: Shapes of ratios to the median of the job, or of differences in seconds
--dry-run: Only say what would be read, kept and refused; keep nothing
--map OURS=THEIRS (pairs .read.columns): Column of a table that has another name; repeatable
--map-value status:THEIRS=OURS (statuses .read.statuses): What a status of the log means, such as status:passed=completed; repeatable
--unit OURS=UNIT (pairs .read.units): Unit of a column, such as input_bytes=GB, runtime_s=min; repeatable
--time-zone ZONE (str .read.time_zone): Time zone of times that name none, such as Europe/Berlin
--features A,B|all (names .read.features): Further columns of a table to keep for predictions
--known-before A,B (names .evaluate.predict.known_before): Further columns of a table that are known before a run begins
--group-by user,cpus,limit (names .group.by): What runs of one job share, in place of what predicts best: name, full_name, short_name, plan, user, cpus, limit, queue, account, partition, qos
--max-refused-share (0..1, float .read.limits.max_refused_share): Load a file of which at most this share of the rows is refused
--pseudonymise (flag .read.pseudonymise): Replace names and hosts by keyed hashes before anything is kept or logged
"""  # noqa: E501  # a line an option
LINE = re.compile(
    r"(?P<flags>--?[\w/-]+(?:, --?[\w/-]+)*)? ?(?P<metavar>[^\s(]\S*?)?(?: \((?P<more>[^)]*)\))?: (?P<help>.+)"
)
OFFERED = {
    "--source": offered(invocation.SOURCES),
    "KEY": offered(invocation.JOB_KEYS),
    **dict.fromkeys(("run", "RUN..."), offered(invocation.RUN_IDS)),
    "model": invocation.offered_model_ids,
    "name": invocation.offered_data_sets,
    "word": invocation.offered_words,
}
EXAMPLES = {
    "--unit": "input_bytes=GB",
    "--map-value": "status:passed=completed",
    "jobs": "run_id=job",
    "workloads": "at_s=elapsed",
    "nodes": "node=hostname",
}
KINDS: dict[str, Any] = {
    **{kind.__name__: kind | None for kind in (str, int, float)},
    **{"flag": bool, "path": Path | None, "names": str | None},
    **dict.fromkeys(("strs", "pairs", "statuses"), list[str] | None),
}
OUT = "--out"
JSON = "--json: One JSON value on stdout and nothing else"
STATUS = "status:"
PATHS = ("PATH", "RUNS")  # paths or addresses, which are named as from anywhere
TEXTS = (str, str | None, list[str], list[str] | None)
VALUES = {"N": (int, int | None), "NUMBER": (float, float | None), "TEXT": TEXTS}  # what a help calls a value
WITHOUT_JSON = ("serve",)


@dataclass(frozen=True)
class OptionLine:
    """One line of a docstring. bounds: least and most, as they stand there; setting: the one that is set, or empty."""

    flags: tuple[str, ...]
    metavar: str | None
    bounds: tuple[str, str]
    kind: str
    setting: str
    help: str

    @property
    def name(self) -> str:
        """Of the argument that the command has for it."""
        return self.flags[0].partition("/")[0].lstrip("-").replace("-", "_") if self.flags else str(self.metavar)

    def _shown_as(self, annotation: Any) -> str | None:
        """What stands for a value in the help: its own word, else one for its type; None: the choices that it has."""
        if self.metavar and not self.flags:
            return self.metavar.upper()
        return self.metavar or next((word for word, kinds in VALUES.items() if annotation in kinds), None)

    def type_for(self, annotation: Any) -> Any:
        """The type with what Typer has to know."""
        least, most = (float(bound) if "." in bound else int(bound) if bound else None for bound in self.bounds)
        completed = next((OFFERED[key] for key in (*self.flags[:1], self.metavar) if key in OFFERED), None)
        keywords: dict[str, Any] = {
            "help": self.help,
            "metavar": self._shown_as(annotation),
            "min": least,
            "max": most,
            "autocompletion": completed if annotation in TEXTS else None,
        }
        if OUT in self.flags:  # what is there already is a folder that can be written to
            keywords |= {"file_okay": False, "writable": True}
        return Annotated[annotation, (Option if self.flags else Argument)(*self.flags, **keywords)]


def lines_of(text: str) -> Iterator[OptionLine]:
    """The lines of a docstring's last paragraph; those that are shared are looked up. Raises TypeError."""
    for line in re.sub(r"\n    +", " ", text).strip().splitlines():
        if ": " not in line:
            yield from (shared()[flag] for flag in line.split(", "))
        elif match := LINE.fullmatch(line):
            yield _line(match)
        else:
            raise TypeError(f"{line!r} is no line about an option")


def _line(match: re.Match[str]) -> OptionLine:
    parts = (match["more"] or "").split(", ")
    bounds = next((part.split("..") for part in parts if ".." in part), ["", ""])
    kind, _, setting = next((part for part in parts if " " in part), "").partition(" ")
    flags = tuple(match["flags"].split(", ")) if match["flags"] else ()
    return OptionLine(flags, match["metavar"] or None, (bounds[0], bounds[1]), kind, setting, match["help"])


@cache
def shared() -> dict[str, OptionLine]:
    """The options that verbs share, by their flag."""
    return {line.flags[0]: line for line in lines_of(SHARED)}


def described(verb: Callable[..., Any]) -> tuple[str, list[OptionLine]]:
    """What the docstring of a verb says about it, and its lines about options. Raises TypeError for other lines."""
    text = inspect.getdoc(verb) or ""
    about, _, block = text.rpartition("\n\n")
    if not about or not re.match(r"--|\S+(?: \(.*\))?: ", block):
        return text, []
    return about, list(lines_of(block))


def command_of(verb: Callable[..., Any], word: str = "") -> Callable[..., None]:
    """The command of a verb, with --json beside its own options. word: of the group it is in.

    Raises TypeError where the lines of its docstring and its arguments do not fit together."""
    about, lines = described(verb)
    first, *arguments = inspect.signature(verb).parameters.values()
    waiting, parameters, settings = iter(arguments), [], {}
    for line in lines:
        if line.setting:
            settings[line.name] = line
            parameter = first.replace(name=line.name, default=False if line.kind == "flag" else None)
            parameters.append(parameter.replace(annotation=line.type_for(_kind(line.kind))))
        else:
            parameter = next(waiting, first)
            parameters.append(parameter.replace(annotation=line.type_for(parameter.annotation)))
    if len(parameters) != len(settings) + len(arguments) or first.name in (parameter.name for parameter in parameters):
        raise TypeError(f"{verb.__module__}.{verb.__name__}: its docstring needs a line for each of its arguments")
    if verb.__name__ not in WITHOUT_JSON:
        [json] = lines_of(JSON)
        parameters.append(first.replace(name="as_json", default=False, annotation=json.type_for(bool)))
    paths = [parameter.name for parameter, line in zip(parameters, lines, strict=False) if line.metavar in PATHS]
    context = first.replace(name="context", annotation=typer.Context)

    def command(context: typer.Context, *, as_json: bool = False, **values: Any) -> None:
        values |= {name: absolute(values[name]) for name in paths if name in values}
        options = [(line.flags[0], line.kind, line.setting, values.pop(name)) for name, line in settings.items()]
        flags = [(path, _converted(flag, kind, value, word)) for flag, kind, path, value in options if _is_given(value)]
        call: Invocation = replace(context.find_root().obj, as_json=as_json)
        for path, value in flags:
            call = call.having(_nested(f"{word}{path}" if path.startswith(".") else path, value))
        answer = verb(call, **values)
        for figures in answer or ():
            if as_json:
                show_json(figures)
                answer.close()

    command.__name__, command.__doc__ = verb.__name__, about
    command.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in (context, *parameters)}
    return command


def listed(verb: Callable[..., Any]) -> Callable[..., None]:
    """A command of this name and docstring that has no options: enough for a list."""

    def command() -> None: ...

    command.__name__, command.__doc__ = verb.__name__, verb.__doc__
    return command


def _kind(name: str) -> Any:
    """The type of an option that sets a setting: one of KINDS, some words with | between them, or a name of choices."""
    return KINDS.get(name) or (Literal[tuple(name.split("|"))] if "|" in name else getattr(choices, name)) | None


def _is_given(value: Any) -> bool:
    """Whether the user has given an option; 0 and an empty text are something."""
    return value is not None and value is not False and value != []


def _converted(flag: str, kind: str, value: Any, word: str) -> Any:
    """What was given, as the setting has it. Raises BadParameter."""
    if kind == "path":
        return str(value.absolute())
    if kind == "names":
        return [name.strip() for name in value.split(",") if name.strip()]
    if kind == "pairs":
        return pairs(value, flag, EXAMPLES.get(flag) or EXAMPLES[word])
    if kind == "statuses":
        if wrong := [pair for pair in value if not pair.startswith(STATUS)]:
            raise typer.BadParameter(
                f"{wrong[0]!r}: statuses alone can be mapped: status:THEIRS=OURS", param_hint="--map-value"
            )
        return pairs([pair.removeprefix(STATUS) for pair in value], flag, EXAMPLES[flag], "status:THEIRS=OURS")
    return value


def pairs(given: list[str] | None, flag: str, example: str, shape: str = "") -> dict[str, str]:
    """Left to right of the sign of each; theirs may hold one. example: of a pair; shape: what one looks like.

    Raises BadParameter for one that is none."""
    shape = shape or {"--map": "OURS=THEIRS"}.get(flag, "OURS=UNIT")
    split = [pair.rpartition("=") if "THEIRS=" in shape else pair.partition("=") for pair in given or []]
    if wrong := [f"{left}{sign}{right}" for left, sign, right in split if not (left and right)]:
        raise typer.BadParameter(f"{wrong[0]!r} is not {shape}, such as {example}", param_hint=flag)
    return {left: right for left, _, right in split}


def absolute(paths: Any) -> Any:
    """The path or paths as they are named from anywhere; addresses stay as they are."""
    if isinstance(paths, str):
        return paths if "://" in paths else str(Path(paths).absolute())
    return [absolute(path) for path in paths or []]


def _nested(path: str, value: Any) -> dict[str, Any]:
    first, _, rest = path.partition(".")
    return {first: _nested(rest, value) if rest else value}
