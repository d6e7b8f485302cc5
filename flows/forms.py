"""Flows whose parameters are one pydantic model, drawn by Prefect's form field by field.

A flow with a single argument `params` would do, but overriding any part of it (a schedule's own paths, an automation,
`prefect deployment run -p`) would then replace the whole model and silently drop the settings of the rest. So each
field of the model becomes an argument of the flow, with its default, bounds and description."""

import functools
import inspect
from collections.abc import Callable, Mapping
from copy import copy
from typing import Annotated, Any, TypeVar, cast, get_type_hints

import prefect
from prefect import Flow
from prefect.context import TagsContext
from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
from pydantic.fields import FieldInfo

from flows.home_server import has_own_server
from flows.kept_runs import kept
from flows.run_logs import show_errors_in_one_line, show_steps
from tasks.errors import WhorlError
from tasks.params import Params
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
    changed = {PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None} if has_own_server() else {}
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
