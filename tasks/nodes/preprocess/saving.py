"""A preprocessor as JSON: it gives the same numbers after loading."""

import json
from pathlib import Path

from pydantic import ValidationError

from tasks.errors import BadInput
from tasks.nodes.preprocess.fitted import Preprocessor

FORMAT, VERSION = "whorl.nodes.preprocess", 1


def save_preprocessor(preprocessor: Preprocessor, file: Path) -> None:
    """Write a preprocessor into a file; its folder is made if it is not there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    main = {"format": FORMAT, "version": VERSION, **preprocessor.model_dump()}
    file.write_text(json.dumps(main, indent=1), encoding="utf-8")


def load_preprocessor(file: Path) -> Preprocessor:
    """What save_preprocessor wrote. Raises BadInput if the file is missing, damaged or foreign."""
    try:
        main = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(main, dict) or main.pop("format", None) != FORMAT:
            raise ValueError(f"not of the format {FORMAT}")
        if (version := main.pop("version", None)) != VERSION:
            raise ValueError(f"version {version} of the format, this whorl reads {VERSION}")
        return Preprocessor.model_validate(main)
    except (OSError, ValueError, ValidationError) as error:
        problem = f"no preprocessing of nodes ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(file, problem, "what 'whorl nodes preprocess' wrote", "preprocess again") from error
