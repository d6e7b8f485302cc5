"""Flows whose parameters are one pydantic model, drawn by Prefect's form field by field.

A flow with a single argument `params` would do, but overriding any part of it (a schedule's own paths, an automation,
`prefect deployment run -p`) would then replace the whole model and silently drop the settings of the rest. So each
field of the model becomes an argument of the flow, with its default, bounds and description."""

import functools
import inspect
from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from typing import Annotated, Any, TypeVar, cast, get_type_hints

import prefect
from prefect import Flow
from prefect.context import TagsContext
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from prefect.utilities.callables import parameter_schema
from pydantic.fields import FieldInfo

from flows.engine.kept_runs import (
    kept,
    show_errors_in_one_line,
    show_steps,
)
from flows.engine.shared_server import is_shared
from tasks.errors import WhorlError
from tasks.params import Params
from tasks.settings import Settings
from tasks.source_names import ONLY_SOURCE
from tasks.warehouse.sources import source_of

P = TypeVar("P", bound=Params)
Result = TypeVar("Result", bound=Mapping[str, Any])
TAG = "whorl"
INSTEAD = ("logs", "telemetry", "results")  # files to evaluate instead of a source


def flow(
    *, name: str, run_name: Callable[[], str], tags: list[str]
) -> Callable[[Callable[[P], Result]], Flow[..., Result]]:
    """Prefect's flow for a function of one parameter model: one argument for each of its fields.

    The run is kept in ops.runs with its result (keys and figures), and our own errors are logged as one line."""

    def decorate(body: Callable[[P], Result]) -> Flow[..., Result]:
        model: type[P] = get_type_hints(body)["params"]

        @functools.wraps(body)
        def run(**fields: Any) -> Result:
            show_errors_in_one_line()
            show_steps()
            params = with_source(name.split("-")[0], model(**fields))
            with TagsContext(current_tags=set()):  # tags are for runs: each tag of a task costs it a request
                return kept(name, params, lambda: body(params))

        run.__signature__ = _signature(model)  # type: ignore[attr-defined]  # what Prefect makes the form from
        run.__doc__ = _documentation(body, model)
        run.tags = [TAG, *tags]  # type: ignore[attr-defined]  # Prefect's flows have none; call() sets them
        made: Flow[..., Result] = prefect.flow(name=name, flow_run_name=run_name)(run)
        return made

    return decorate


def with_source(word: str, params: P) -> P:
    """The parameters with the only source of the word where they name none, and no files instead of one.

    Raises NotFound if there is no source, or several to choose from, NoWarehouse."""
    if getattr(params, "source", None) != ONLY_SOURCE or any(getattr(params, field, None) for field in INSTEAD):
        return params
    return params.model_copy(update={"source": source_of(params.warehouse, word)})  # type: ignore[attr-defined]


def call(called: Flow[..., Result], params: Params) -> Result:
    """Run a flow here and now; returns its result, and its error comes back as the exception.

    The run carries the tags of the flow; a deployed run has those of its deployment. A run with a server of its own
    sends no heartbeats, since nobody would miss them: it ends a second sooner."""
    fields = {name: getattr(params, name) for name in type(params).model_fields}
    changed = {PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None} if is_shared() else {}
    try:
        with temporary_settings(changed), prefect.tags(*called.fn.tags):  # type: ignore[attr-defined]
            return cast(Result, called(**fields))
    except WhorlError as error:
        told = copy(error)
        # Prefect keeps the error until the exit; with its frames DuckDB would complain there about leaked objects
        error.__traceback__ = error.__cause__ = error.__context__ = None
        raise told from None


def _signature(model: type[Params]) -> inspect.Signature:
    return inspect.Signature([_argument(name, field) for name, field in model.model_fields.items()])


def _argument(name: str, field: FieldInfo) -> inspect.Parameter:
    typed: Any = field.annotation
    for bound in field.metadata:
        typed = Annotated[typed, bound]
    default = inspect.Parameter.empty if field.is_required() else field.get_default()
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=typed)


def _documentation(body: Callable[..., Any], model: type[Params]) -> str:
    """The docstring that Prefect takes the descriptions of flow and fields from."""
    fields = [f"    {name}: {field.description}" for name, field in model.model_fields.items()]
    return "\n".join([inspect.cleandoc(body.__doc__ or ""), "", "Args:", *fields])


UNITS = {"s": "s", "mb": "MB", "days": "days", "hours": "hours", "minutes": "minutes", "bytes": "bytes"}
WORDS = {"api": "API", "id": "ID", "url": "URL", "n": "number of", "min": "minimum", "max": "maximum"}
AS_THEY_ARE = ("sacct",)  # names of programs are written small
WHOLE_BELOW = 1e10  # a bound is written out up to here


def form_of(flow: Flow[..., Any]) -> dict[str, Any]:
    """The JSON schema of a flow's parameters, from which Prefect draws its form."""
    schema: dict[str, Any] = deepcopy(parameter_schema(flow).model_dump_for_openapi())
    for part in (schema, *schema.get("definitions", {}).values()):
        if "description" in part:
            part["description"] = _described(part)
        for name, field in part.get("properties", {}).items():
            field["title"] = title_of(name)
            if "description" in field:
                field["description"] = _described(field)
    return schema


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
    if "maxLength" in field or "minLength" in field:
        return f"{_range(field.get('minLength'), field.get('maxLength'))} characters"
    if "maxItems" in field or "minItems" in field:
        return f"{_range(field.get('minItems'), field.get('maxItems'))} entries"
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
    if value < WHOLE_BELOW:
        return f"{value:,.10g}"
    power = int(value).bit_length() - 1
    return f"2^{power}" if value == 2**power else f"{value:.3g}"


def _described(field: dict[str, Any]) -> str:
    bounds = bounds_of(field)
    return shown_whole(field["description"]).removesuffix(".") + (f"; allowed: {bounds}" if bounds else "")


def shown_whole(text: str) -> str:
    """The text without angle brackets: the older UI takes <home> for HTML and drops it."""
    return text.replace("<", "[").replace(">", "]")


GO_ON = ("nodes", "advice")  # words whose next recording goes on in the folder of the one before


def resolved_parameters(settings: Settings, flow_name: str, names: list[str]) -> dict[str, Any]:
    """Those parameters of a flow that settings decide, as JSON: `read` of jobs-ingest is the setting jobs.read.

    names: the parameters of the flow; the warehouse, whole words and the groups of its
    own word are filled in, the rest is left out."""
    word = flow_name.split("-")[0]
    groups = {"warehouse": settings.warehouse, **dict(settings), **dict(getattr(settings, word))}
    return {name: _json(groups[name]) for name in names if name in groups}


def first_parameters(settings: Settings, flow_name: str, names: list[str]) -> dict[str, Any]:
    """What a new deployment starts with beside the settings: places in the home folder. An operator may change them."""
    home, word = settings.warehouse.home, flow_name.split("-")[0]
    goes_on = word in GO_ON
    places: dict[str, Any] = {
        "paths": [str(home / "inbox")],
        "folder": str(home / "recordings" / (word if goes_on else f"{word}-{{run}}")),
        "landing": settings.warehouse.landing_folder,
    }
    return {name: place for name, place in places.items() if name in names}


def _json(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value
