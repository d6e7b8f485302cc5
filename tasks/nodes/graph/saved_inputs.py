"""What inputs need, as JSON in a folder: it gives the same numbers after loading."""

import json
from pathlib import Path

from pydantic import ValidationError

from tasks.errors import BadInput
from tasks.nodes.graph.fitting import InputScales
from tasks.nodes.graph.scaled_node_metrics import NodeMetricScales
from tasks.nodes.preprocess.saving import load_preprocessor, save_preprocessor
from tasks.nodes.saved_reference import load_reference, save_reference
from tasks.nodes.score_params import ScoreParams

FORMAT, VERSION = "whorl.nodes.inputs", 1
PREPROCESSOR, REFERENCE, INPUTS = "preprocessor.json", "reference.json", "inputs.json"


def save_inputs(scales: InputScales, folder: Path) -> None:
    """Write preprocessor.json, reference.json and inputs.json; the folder is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    save_preprocessor(scales.preprocessor, folder / PREPROCESSOR)
    save_reference(scales.reference, folder / REFERENCE)
    told = {"node_metrics": scales.node_metrics.model_dump(), "score": scales.score.model_dump()}
    main = {"format": FORMAT, "version": VERSION, **told}
    (folder / INPUTS).write_text(json.dumps(main, indent=1), encoding="utf-8")


def load_inputs(folder: Path) -> InputScales:
    """What save_inputs wrote. Raises BadInput for a file that is missing, damaged or foreign."""
    file = folder / INPUTS
    try:
        main = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(main, dict) or (main.get("format"), main.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"not version {VERSION} of the format {FORMAT}")
        node_metrics = NodeMetricScales.model_validate(main["node_metrics"])
        score = ScoreParams.model_validate(main["score"])
    except (OSError, ValueError, KeyError, ValidationError) as error:
        problem = f"no inputs of a model of nodes ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(file, problem, "what a training of nodes wrote", "train again") from error
    preprocessor, reference = load_preprocessor(folder / PREPROCESSOR), load_reference(folder / REFERENCE)
    return InputScales(preprocessor, reference, node_metrics, score)
