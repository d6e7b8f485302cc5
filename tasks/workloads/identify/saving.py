"""A model in files without code: JSON for what it is made of, Parquet for its numbers, LightGBM's text for its trees.

identify.json     parameters, counters, names of runs, and the SHA-256 of the other files
arrays.parquet    one row an array: name, shape, values
trees-N.txt       one booster each"""

import hashlib
import json
from pathlib import Path
from typing import Any

from tasks.errors import BadInput
from tasks.workloads.identify.model import Model
from tasks.workloads.identify.saved_arrays import read_arrays, write_arrays
from tasks.workloads.identify.saved_parts import arrays_of, facts_of, model_from

MAIN, ARRAYS, TREES = "identify.json", "arrays.parquet", "trees-{}.txt"
FORMAT, VERSION = "whorl.workloads.identify", 2


def save_model(model: Model, folder: Path) -> None:
    """Write a model into a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    write_arrays(folder / ARRAYS, arrays_of(model))
    names = [ARRAYS]
    for at, text in enumerate(model.judge.trees.texts):
        names.append(TREES.format(at))
        (folder / names[-1]).write_text(text, encoding="utf-8")
    main = {"format": FORMAT, "version": VERSION, **facts_of(model)}
    main["files"] = {name: _sha256(folder / name) for name in names}
    (folder / MAIN).write_text(json.dumps(main, indent=1), encoding="utf-8")


def load_model(folder: Path) -> Model:
    """What save_model wrote; it gives the same answers. Raises BadInput if a file is missing, damaged or foreign."""
    try:
        main = _main(folder / MAIN)
        for name, expected in main["files"].items():
            if _sha256(folder / str(name)) != expected:
                raise ValueError(f"{name} is damaged, or of another model")
        texts = [(folder / name).read_text(encoding="utf-8") for name in main["files"] if name != ARRAYS]
        return model_from(main, read_arrays(folder / ARRAYS), texts)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, BadInput) as error:
        problem = f"no model of workloads ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(folder, problem, "the files of 'whorl workloads train'", "train again") from error


def _main(file: Path) -> dict[str, Any]:
    main = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(main, dict) or main.get("format") != FORMAT:
        raise ValueError(f"{MAIN} is not of the format {FORMAT}")
    if main.get("version") != VERSION:
        raise ValueError(f"version {main.get('version')} of the format, this whorl reads {VERSION}")
    return main


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
