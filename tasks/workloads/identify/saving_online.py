"""The models of several durations in one folder: `after-5s`, `after-10s`, … beside a list of them."""

import json
from pathlib import Path

from tasks.errors import BadInput
from tasks.workloads.identify.online import OnlineModel
from tasks.workloads.identify.saving import load_model, save_model

MAIN = "online.json"
FORMAT = "whorl.workloads.identify.online"


def save_online(online: OnlineModel, folder: Path) -> None:
    """Write the models into a folder, which is made if it is not there."""
    for seconds, model in zip(online.seconds, online.models, strict=True):
        save_model(model, _place(folder, seconds))
    (folder / MAIN).write_text(json.dumps({"format": FORMAT, "seconds": online.seconds}), encoding="utf-8")


def load_online(folder: Path) -> OnlineModel:
    """What save_online wrote. Raises BadInput if a file is missing, damaged or foreign."""
    try:
        main = json.loads((folder / MAIN).read_text(encoding="utf-8"))
        if main.get("format") != FORMAT:
            raise ValueError(f"{MAIN} is not of the format {FORMAT}")
        seconds = tuple(float(one) for one in main["seconds"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"no models of durations ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(folder, problem, "what save_online wrote", "train again") from error
    return OnlineModel(seconds, tuple(load_model(_place(folder, one)) for one in seconds))


def _place(folder: Path, seconds: float) -> Path:
    return folder / f"after-{seconds:g}s"
