"""Flows whose parameters are one pydantic model, drawn by Prefect's form: what a person changes first, then `expert`.

A flow with a single argument `params` would do, but overriding any part of it (a schedule's own paths, an automation,
`prefect deployment run -p`) would then replace the whole model and silently drop the settings of the rest. So each
plain field of the model becomes an argument of the flow, and so does what its FIRST names of its groups, by the last
part of the dotted name or as name=path. All else stands in `expert`: dotted names and values, whose schema lets the
server refuse a wrong one when the run is made."""

import functools
import inspect
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from datetime import datetime
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast, get_type_hints

import prefect
from prefect import Flow
from prefect.context import TagsContext
from prefect.runtime import deployment, flow_run
from prefect.utilities.callables import ParameterSchema, parameter_schema
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from tasks.advice.params import AdviceParams
from tasks.choices import MAX_SOURCE_CHARS, ONLY_SOURCE, checked_source
from tasks.errors import BadSetting, WhorlError
from tasks.jobs.params import JobsParams
from tasks.nodes.params import NodesParams
from tasks.params import Params, explain
from tasks.settings import Settings
from tasks.warehouse.place import Warehouse
from tasks.warehouse.runs import RunRecord, record_run
from tasks.warehouse.sources import now, source_of
from tasks.workloads.params import WorkloadsParams

SOURCE = "Name under which the rows are kept; rows of different sources never mix"
OF_SOURCE = "Name under which the rows were kept when they were read; empty: the only source there is"
Source = Annotated[str, Field(min_length=1, max_length=MAX_SOURCE_CHARS), AfterValidator(checked_source)]
OfSource = Annotated[
    str, Field(max_length=MAX_SOURCE_CHARS), AfterValidator(lambda name: checked_source(name) if name else ONLY_SOURCE)
]
Folder = Annotated[
    str,
    Field(
        min_length=1,
        description="Folder for the recording; {run} in it stands for the id of the run, so that each run gets its own",
    ),
]
LABELLED = "read.label_from read.manifest"


class InHomeParams(Params):
    """What works on the warehouse of a home."""

    warehouse: Warehouse = Field(description="Where the warehouse is, and what it may use of this machine")


class OfSourceParams(InHomeParams):
    """What asks about a source of it."""

    source: OfSource = Field(ONLY_SOURCE, description=OF_SOURCE)


class WordsParams(InHomeParams):
    """What works on a home with the settings of all words."""

    jobs: JobsParams = JobsParams()
    workloads: WorkloadsParams = WorkloadsParams()
    nodes: NodesParams = NodesParams()
    advice: AdviceParams = AdviceParams()


Result = TypeVar("Result", bound=Mapping[str, Any])
logger = logging.getLogger(__name__)
HIDDEN = "(pseudonymised)"
PATHS = ("paths", "telemetry", "results")  # what flows that read files call them


def kept(flow: str, params: Params, work: Callable[[], Result]) -> Result:
    """The result of the work, after the run was written down; so is a failed run, with its error.

    Parameters without a warehouse (a recording on another machine) leave no row. A run that is continued replaces
    its row. A row that cannot be written is a warning, since the work itself is done; an error that the work itself met
    is told once, by the work."""
    started_at = now()
    try:
        result = work()
    except Exception as error:
        _write(flow, params, "failed", started_at, {"error": f"{type(error).__name__}: {error}"}, raised=error)
        raise
    _write(flow, params, "completed", started_at, dict(result))
    return result


def _write(
    flow: str,
    params: Params,
    status: Literal["completed", "failed"],
    started_at: datetime,
    figures: dict[str, Any],
    *,
    raised: Exception | None = None,
) -> None:
    warehouse = getattr(params, "warehouse", None)
    if not isinstance(warehouse, Warehouse) or (status == "failed" and not warehouse.file.exists()):
        return  # a mistyped path must not leave an empty warehouse behind
    parameters = params.model_dump(mode="json")
    if getattr(getattr(params, "read", None), "pseudonymise", False):  # files and folders may be called after users
        named = [name for name in PATHS if parameters.get(name)]
        for path in sorted((path for name in named for path in parameters[name]), key=len, reverse=True):
            if "error" in figures:  # and what follows the path up to a colon: files of a folder
                figures = {"error": re.sub(re.escape(path) + "[^:]*", HIDDEN, figures["error"])}
        parameters |= {name: [HIDDEN] * len(parameters[name]) for name in named}
    run = RunRecord(
        run_id=str(flow_run.id),
        flow=flow,
        word=flow.split("-")[0],
        source=getattr(params, "source", ""),
        status=status,
        started_at=started_at,
        ended_at=now(),
        parameters=parameters,
        figures=figures,
    )
    try:
        record_run(warehouse, run)
    except WhorlError as error:
        is_repeated = type(error) is type(raised)
        logger.log(logging.DEBUG if is_repeated else logging.WARNING, "the run is missing in ops.runs: %s", error)


RUN_LOGGERS = ("prefect.flow_runs", "prefect.task_runs")
STEP_LOGGERS = ("tasks", "flows")


class OneLine(logging.Filter):
    """Replaces the traceback of an error that already says what is wrong and what to do by that line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep every record; shorten those of our own errors."""
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if isinstance(error, WhorlError):
            record.msg, record.args, record.exc_info, record.exc_text = str(error), (), None, None
        return True


ONE_LINE = OneLine()


def show_errors_in_one_line() -> None:
    """Put the filter on the loggers of flow and task runs; twice is once."""
    for name in RUN_LOGGERS:
        logging.getLogger(name).addFilter(ONE_LINE)


def show_steps() -> None:
    """Let what steps log at INFO reach the run's log (Prefect listens to PREFECT_LOGGING_EXTRA_LOGGERS).

    What a terminal shows stays as it was: its handlers take over the level that their logger had."""
    root = logging.getLogger()
    for handler in root.handlers:
        handler.setLevel(max(handler.level, root.level))
    for name in STEP_LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(min(logger.level or logging.INFO, logging.INFO))


def of_source(verb: str) -> str:
    """The verb, and the source of the run."""
    return f"{verb} {flow_run.parameters['source'] or 'the only source'}"


def of_ingest(key: str, otherwise: str) -> str:
    """What is read into the source of the run. key: its parameter of paths; otherwise: what it reads without any."""
    return f"ingest {in_short(flow_run.parameters.get(key) or [otherwise])} into {flow_run.parameters['source']}"


def of_evaluation(key: str, called: str = "paths") -> str:
    """What is evaluated: see files_or_source."""
    return f"evaluate {files_or_source(key, called)}"


def files_or_source(key: str, called: str = "paths") -> str:
    """The files that the run reads, else its source. key: its parameter of paths; called: what many of them are."""
    paths = flow_run.parameters.get(key) or []
    return in_short(paths, called) if paths else str(flow_run.parameters["source"] or "the only source")


def evaluation_folder(warehouse: Warehouse, word: str) -> str:
    """Where the tables and the page of this run go, which measures something of a word."""
    from tasks.report.site import reports

    return str(reports(warehouse) / f"{word}-evaluation-{str(flow_run.id)[:8]}")


def in_use(training: Mapping[str, Any], otherwise: str) -> str:
    """Which model is in use after a training. otherwise: why another one is."""
    champion = training["champion_id"]
    return "this model" if champion == training["model_id"] else f"{champion}: {otherwise}"


def in_short(paths: list[Any], called: str = "paths") -> str:
    """The name of the only path, or how many there are."""
    return Path(str(paths[0])).name or str(paths[0]) if len(paths) == 1 else f"{len(paths)} {called}"


P = TypeVar("P", bound=Params)
TAG = "whorl"
HOME, EXPERT, MOST_NEAR = "warehouse.home", "expert", 3
ABOUT_EXPERT = (
    'All other settings of this flow, by name, such as {"warehouse.memory_mb": 2048}; whorl config shows them all; a '
    "wrong name or value is refused when the run is made"
)
INSTEAD = ("logs", "telemetry", "results")  # files to evaluate instead of a source


class FormFlow(Flow[..., Result]):
    """Prefect's flow whose form is made when somebody asks for it: a command runs one flow of ten.

    Its arguments are JSON as they are: Prefect's own way to make them so imports FastAPI."""

    @functools.cached_property
    def parameters(self) -> ParameterSchema:  # type: ignore[override]
        """What Prefect makes the form from."""
        return parameter_schema(self.fn)

    def serialize_parameters(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """The arguments as the server is told them."""
        return cast(dict[str, Any], to_jsonable_python(parameters))


def flow(run_name: Callable[[], str], **options: Any) -> Callable[[Callable[[P], Result]], Flow[..., Result]]:
    """Prefect's flow for a function of one parameter model, with the arguments of arguments_of and `expert`.

    Its name is that of the function, with dashes; its tags are whorl and its word. The run is kept in ops.runs with its
    result (keys and figures), and our own errors are logged as one line. options: of Prefect's Flow."""

    def decorate(body: Callable[[P], Result]) -> Flow[..., Result]:
        model: type[P] = get_type_hints(body)["params"]
        name = body.__name__.replace("_", "-")
        word, _, verb = name.partition("-")

        @functools.wraps(body)
        def run(**fields: Any) -> Result:
            show_errors_in_one_line()
            show_steps()
            deployed = deployment.parameters.get(EXPERT) or {} if deployment.id else {}
            expert = deployed | dict(fields.get(EXPERT) or {})  # one that is named keeps the deployment's others
            params = with_source(word, from_form(model, {**fields, EXPERT: expert}))
            with TagsContext(current_tags=set()):  # tags are for runs: each tag of a task costs it a request
                return kept(name, params, lambda: body(params))

        run.__doc__ = _documentation(body, model)
        run.model = model  # type: ignore[attr-defined]
        run.tags = [TAG, verb if word == TAG else word]  # type: ignore[attr-defined]  # Prefect's flows have none
        run.__signature__ = inspect.Signature()  # type: ignore[attr-defined]  # as yet
        made = FormFlow(run, name=name, flow_run_name=run_name, **options)
        del made.parameters
        run.__signature__ = made.__signature__ = _signature(model)  # type: ignore[attr-defined]
        return made

    return decorate


def with_source(word: str, params: P) -> P:
    """The parameters with the only source of the word where they name none, and no files instead of one.

    Raises NotFound if there is no source, or several to choose from, NoWarehouse."""
    if getattr(params, "source", None) != ONLY_SOURCE or any(getattr(params, field, None) for field in INSTEAD):
        return params
    return params.model_copy(update={"source": source_of(params.warehouse, word)})  # type: ignore[attr-defined]


def call(called: Flow[..., Result], known: Params | Mapping[str, Any], /, **changed: Any) -> Result:
    """Run a flow here and now; returns its result, and its error comes back as the exception.

    known: its parameters, or what is known of them by name, such as the groups of a word; changed: those that differ.

    The run carries the tags of the flow; a deployed run has those of its deployment."""
    params = known if isinstance(known, Params) else filled_in(model_of(called), known, **changed)
    try:
        with prefect.tags(*called.fn.tags):  # type: ignore[attr-defined]
            return cast(Result, called(**form_fields(params)))
    except WhorlError as error:
        raised = copy(error)
        # Prefect keeps the error until the exit; with its frames DuckDB would complain there about leaked objects
        error.__traceback__ = error.__cause__ = error.__context__ = None
        raise raised from None


def run_flow(name: str, settings: Settings, /, **changed: Any) -> Any:
    """The result of a flow such as jobs-train, run here and now: changed ones as given, the others from settings."""
    word, _, verb = name.partition("-")
    called = getattr(import_module(f"flows.{verb if word == TAG else word}"), name.replace("-", "_"))
    return call(called, filled_in(model_of(called), _settings_of(settings, word), **changed))


def filled_in(model: type[P], known: Mapping[str, Any], /, **changed: Any) -> P:
    """The parameters of a flow: its own, and of what is known, such as the groups of a word, that of the same names."""
    return model.model_validate({name: known[name] for name in model.model_fields if name in known} | changed)


def model_of(called: Flow[..., Any]) -> type[Params]:
    """The parameter model of a flow."""
    model: type[Params] = called.fn.model  # type: ignore[attr-defined]
    return model


def arguments_of(model: type[Params]) -> dict[str, str]:
    """The arguments of a flow and the parameter that each stands for, by its dotted name: plain fields, then FIRST.

    Raises TypeError where FIRST names no parameter."""
    known = _leaves(model)
    arguments = {name: name for name in model.model_fields if name in known and name not in getattr(model, "LATER", ())}
    firsts = [first.rpartition("=") for first in getattr(model, "FIRST", "").split()]
    arguments |= {name or path.rpartition(".")[2]: path for name, _, path in firsts}
    arguments |= {"home": HOME} if HOME in known else {}
    if missing := [path for path in arguments.values() if path not in known]:
        raise TypeError(f"{model.__name__}.FIRST: {missing[0]} is no parameter of it")
    return arguments


def form_fields(params: Params) -> dict[str, Any]:
    """Parameters as the arguments of their flow; expert: what differs from the defaults, as JSON."""
    arguments = arguments_of(type(params))
    given, usual = _values(params.model_dump(mode="json"), type(params)), _values(_defaults(type(params)), type(params))
    expert = {
        path: value
        for path, value in given.items()
        if path not in arguments.values() and (path not in usual or value != usual[path])
    }
    return {name: given[path] for name, path in arguments.items() if path in given} | (
        {EXPERT: expert} if _expert_paths(type(params)) else {}
    )


def from_form(model: type[P], fields: Mapping[str, Any]) -> P:
    """The parameters that the arguments of a flow stand for. Raises BadSetting: one line with field and bounds."""
    known, arguments, values = _leaves(model), arguments_of(model), _defaults(model)
    expert = dict(fields.get(EXPERT) or {})
    if unknown := [path for path in expert if path not in known or path in arguments.values()]:
        near = get_close_matches(unknown[0], known) or _expert_paths(model)
        raise BadSetting(
            f"expert: {unknown[0]}: no such parameter here; expected one such as {', '.join(near[:MOST_NEAR])}"
        )
    for path, value in ({arguments[name]: value for name, value in fields.items() if name != EXPERT} | expert).items():
        *groups, last = path.split(".")
        group = values
        for name in groups:
            group = group.setdefault(name, {})
        group[last] = value
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise BadSetting(explain(error, model, {})) from error


def _settings_of(settings: Settings, word: str) -> dict[str, Any]:
    """What settings say to the flows of a word: the warehouse, whole words, and the groups of its own."""
    return {"warehouse": settings.warehouse, **dict(settings), **dict(getattr(settings, word))}


def _group(field: FieldInfo) -> type[Params] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Params) else None


def _leaves(model: type[Params], before: str = "") -> dict[str, FieldInfo]:
    """Every parameter by its dotted name."""
    fields: dict[str, FieldInfo] = {}
    for name, field in model.model_fields.items():
        inner = _group(field)
        fields |= _leaves(inner, f"{before}{name}.") if inner else {f"{before}{name}": field}
    return fields


def _values(dumped: Mapping[str, Any], model: type[Params], before: str = "") -> dict[str, Any]:
    """The values of dumped parameters by dotted name, as far as there are any."""
    values: dict[str, Any] = {}
    for name, value in dumped.items():
        inner = _group(model.model_fields[name])
        values |= _values(value, inner, f"{before}{name}.") if inner else {f"{before}{name}": value}
    return values


def _defaults(model: type[Params]) -> dict[str, Any]:
    """The defaults of the model as JSON; a group without one has those of its own fields."""
    groups = {name: inner for name, field in model.model_fields.items() if (inner := _group(field))}
    without = {name: _defaults(inner) for name, inner in groups.items() if model.model_fields[name].is_required()}
    return without | model.model_construct().model_dump(mode="json")


def _signature(model: type[Params]) -> inspect.Signature:
    kind, known, usual = inspect.Parameter.KEYWORD_ONLY, _leaves(model), _values(_defaults(model), model)
    arguments = []
    for name, path in arguments_of(model).items():
        default = usual.get(path, inspect.Parameter.empty)
        arguments.append(inspect.Parameter(name, kind, default=default, annotation=_typed(known[path])))
    if _expert_paths(model):
        arguments.append(inspect.Parameter(EXPERT, kind, default={}, annotation=dict[str, Any]))
    return inspect.Signature(arguments)


def _typed(field: FieldInfo) -> Any:
    """The type of a field with its bounds."""
    return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation


def _expert_paths(model: type[Params]) -> list[str]:
    """The parameters that stand in `expert`: those that are no arguments."""
    return sorted(_leaves(model).keys() - arguments_of(model).values())


def _documentation(body: Callable[..., Any], model: type[Params]) -> str:
    """The docstring that Prefect takes the descriptions of flow and fields from."""
    known = _leaves(model)
    fields = [f"    {name}: {known[path].description}" for name, path in arguments_of(model).items()]
    fields += [f"    {EXPERT}: {ABOUT_EXPERT}"] if _expert_paths(model) else []
    return "\n".join([inspect.cleandoc(body.__doc__ or ""), "", "Args:", *fields])


UNITS = {"s": "s", "mb": "MB", "days": "days", "hours": "hours", "minutes": "minutes", "bytes": "bytes"}
WORDS = {"api": "API", "id": "ID", "url": "URL", "n": "number of", "min": "minimum", "max": "maximum"}
AS_THEY_ARE = ("sacct",)  # names of programs are written small
LISTED, ANOTHER = "One that there is", "Another name"  # ways to say a source
WHOLE_BELOW = 1e10  # a bound is written out up to here


def form_of(flow: Flow[..., Any], sources: Sequence[str] = ()) -> dict[str, Any]:
    """The JSON schema of a flow's parameters, from which Prefect draws its form.

    sources: those that the word of the flow has rows of; the form lists them, and takes another name as well: one that
    is made by reading files, or that came after the form."""
    schema: dict[str, Any] = deepcopy(parameter_schema(flow).model_dump_for_openapi())
    for part in (schema, *schema.get("definitions", {}).values()):
        if "description" in part:
            part["description"] = _described(part)
        for name, field in part.get("properties", {}).items():
            field["title"] = title_of(name)
            if "description" in field:
                field["description"] = _described(field)
    if sources and (source := schema["properties"].get("source")):
        named = {key: source.pop(key) for key in ("type", "minLength", "maxLength") if key in source}
        listed = {"title": LISTED, "type": "string", "enum": [*dict.fromkeys([source.get("default", ""), *sources])]}
        source["anyOf"] = [listed, {"title": ANOTHER, **named}]
    if EXPERT in schema["properties"]:
        schema["properties"][EXPERT] |= _expert_schema(model_of(flow), schema.setdefault("definitions", {}))
    return schema | {"additionalProperties": False}


def _expert_schema(model: type[Params], definitions: dict[str, Any]) -> dict[str, Any]:
    """What the mapping of experts may hold: names as patterns, which no form draws as fields, each with its bounds.

    definitions: of the form; those of the values are added."""
    named, known = {}, _leaves(model)
    for path in _expert_paths(model):
        schema = TypeAdapter(_typed(known[path])).json_schema(ref_template="#/definitions/{model}")
        definitions |= schema.pop("$defs", {})
        named[f"^{re.escape(path)}$"] = schema
    return {"patternProperties": named, "additionalProperties": False}


def title_of(name: str) -> str:
    """A field's name as a title, with its unit in brackets; a size that is only called by its unit is a size."""
    *words, last = name.split("_")
    unit = UNITS.get(last) if words else None
    if not unit:
        words.append(last)
    elif words in (["min"], ["max"]):
        words.append("size")
    text = " ".join(WORDS.get(word, word) for word in words)
    title = text if words[0] in AS_THEY_ARE else text[:1].upper() + text[1:]
    return title + (f" ({unit})" if unit else "")


def bounds_of(field: dict[str, Any]) -> str:
    """What a field allows, in words: 1 to 200; empty if it allows anything."""
    for least, most, what in (("minLength", "maxLength", "characters"), ("minItems", "maxItems", "entries")):
        if least in field or most in field:
            return f"{_range(field.get(least), field.get(most))} {what}"
    above, below = field.get("exclusiveMinimum"), field.get("exclusiveMaximum")
    if above is None and below is None:
        return _range(field.get("minimum"), field.get("maximum"))
    low = f"above {_number(above)}" if above is not None else _range(field.get("minimum"), None)
    high = f"below {_number(below)}" if below is not None else _range(None, field.get("maximum"))
    return ", ".join(filter(None, (low, high)))


def _range(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f"{_number(low)} or more" if low is not None else f"up to {_number(high)}" if high is not None else ""
    return f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    power = int(value).bit_length() - 1
    return f"{value:,.10g}" if value < WHOLE_BELOW else f"2^{power}" if value == 2**power else f"{value:.3g}"


def _described(field: dict[str, Any]) -> str:
    """The help of a field with its bounds, without angle brackets: the older UI takes <home> for HTML and drops it."""
    text = str(field["description"]).replace("<", "[").replace(">", "]").removesuffix(".")
    return text + (f"; allowed: {bounds}" if (bounds := bounds_of(field)) else "")


GO_ON = ("nodes", "advice")  # words whose next recording goes on in the folder of the one before


def resolved_parameters(settings: Settings, flow: Flow[..., Any]) -> dict[str, Any]:
    """Those arguments of a flow that settings decide, as JSON: `time_zone` of jobs-ingest is jobs.read.time_zone.

    In expert stands what differs from the defaults; what no setting decides is left out."""
    model, known = model_of(flow), _settings_of(settings, flow.name.split("-")[0])
    decided = {name: known[name] for name in model.model_fields if name in known}
    shown = form_fields(model.model_construct(**decided))
    return {
        name: value
        for name, value in shown.items()
        if name == EXPERT or arguments_of(model)[name].split(".")[0] in decided
    }


def undecided(settings: Settings, flow: Flow[..., Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Of a deployment's parameters those that the flow still has and, under expert, that no setting decides."""
    known, paths = _settings_of(settings, flow.name.split("-")[0]), _expert_paths(model_of(flow))
    kept = {name: value for name, value in parameters.items() if name in flow.parameters.properties}
    if expert := kept.get(EXPERT):
        kept[EXPERT] = {path: expert[path] for path in paths if path in expert and path.split(".")[0] not in known}
    return kept


def first_parameters(settings: Settings, flow: Flow[..., Any]) -> dict[str, Any]:
    """What a new deployment starts with beside the settings: places in the home folder. An operator may change them."""
    home, word = settings.warehouse.home, flow.name.split("-")[0]
    goes_on = word in GO_ON
    places: dict[str, Any] = {
        "paths": [str(home / "inbox")],
        "folder": str(home / "recordings" / (word if goes_on else f"{word}-{{run}}")),
        "landing": settings.warehouse.landing_folder,
    }
    return {name: place for name, place in places.items() if name in flow.parameters.properties}
