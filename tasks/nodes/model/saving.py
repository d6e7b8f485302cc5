"""A network as a folder of two files: its weights as safetensors, and JSON with what is needed to build it.

Nothing in them is code, so that a file from elsewhere runs nothing."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors import torch as tensors
from torch import Tensor

from tasks.errors import BadInput
from tasks.nodes.model.network import PeronaNetwork, Sizes
from tasks.nodes.model.params import ModelParams

FORMAT, VERSION = "whorl.nodes.network", 1
WEIGHTS, DESCRIPTION = "network.safetensors", "network.json"
MOST = 100_000  # no size of a network is larger


def save_network(network: PeronaNetwork, meta: Mapping[str, Any], folder: Path) -> None:
    """Write a network into a folder, which is made if it is not there. meta: what JSON can hold, kept as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = tensors.save({name: one.detach().cpu().contiguous() for name, one in network.state_dict().items()})
    main = {
        "format": FORMAT,
        "version": VERSION,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "sizes": network.sizes.model_dump(),
        "params": network.params.model_dump(mode="json"),
        "meta": dict(meta),
    }
    text = json.dumps(main, indent=1, allow_nan=False)
    (folder / WEIGHTS).write_bytes(weights)
    (folder / DESCRIPTION).write_text(text, encoding="utf-8")


def load_network(folder: Path) -> tuple[PeronaNetwork, dict[str, Any]]:
    """The network that save_network wrote, ready to judge (eval mode), and its meta.

    Raises BadInput if a file is missing, damaged or foreign. Nothing is drawn from torch's generator."""
    try:
        main = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if not isinstance(main, dict) or (main.get("format"), main.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"not version {VERSION} of the format {FORMAT}")
        weights = (folder / WEIGHTS).read_bytes()
        if hashlib.sha256(weights).hexdigest() != main["weights_sha256"]:
            raise ValueError(f"{WEIGHTS} is not the file that {DESCRIPTION} was written with")
        network = _built(Sizes.model_validate(main["sizes"]), ModelParams.model_validate(main["params"]))
        network.load_state_dict(_finite(tensors.load(weights)))
        return network.eval(), dict(main["meta"])
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        problem = f"no network of nodes ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(folder, problem, "what 'whorl nodes train' wrote", "train again") from error


def _built(sizes: Sizes, params: ModelParams) -> PeronaNetwork:
    """A network of these sizes; its first weights do not matter, so the generator is left as it was."""
    for name, size in sizes.model_dump().items():
        if not 0 <= size <= MOST:
            raise ValueError(f"{name} is {size}; expected 0 to {MOST}")
    with torch.random.fork_rng(devices=[]):
        return PeronaNetwork(**sizes.model_dump(), params=params)


def _finite(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    for name, one in weights.items():
        if not torch.isfinite(one).all():
            raise ValueError(f"{name} is not finite")
    return weights
