"""The settings of this home as the parameters of a flow, so that the form shows what will run."""

from typing import Any

from tasks.settings import Settings

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
