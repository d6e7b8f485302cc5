"""Settings: class default = conf/*.yaml < conf/local/*.yaml < environment < flag or flow parameter.

An environment variable names word and key: WHORL_JOBS__SUMMARY__MIN_SUPPORT=5. WHORL_HOME and WHORL_DATASETS are
short for WHORL_WHORL__HOME and WHORL_WHORL__DATASETS."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, Field, ValidationError

from tasks.advice.params import AdviceParams
from tasks.errors import BadSetting
from tasks.jobs.params import JobsParams
from tasks.nodes.params import NodesParams
from tasks.params import Params, allowed_values, explain, explain_value, item_model
from tasks.warehouse.place import SPILL, PruneParams, Warehouse
from tasks.workloads.params import WorkloadsParams

ROOT = Path(__file__).parents[1]
PREFIX = "WHORL_"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C eight times as fast, where PyYAML was built with it
SHORT = {"WHORL_HOME": "home", "WHORL_DATASETS": "datasets"}
HOME = "Folder of warehouse, landing, models and reports; relative to the project's root (short: WHORL_HOME)"

LANDING = "Landing folder, an fsspec address or a path relative to the project's root; empty: <home>/landing"
SERVER_IDLE = "How long the server that commands share outlives the last of them, in minutes"
QUERY_LIMIT = "Longest time for 'whorl query', in seconds, best below lock_wait_s: writers wait for it; 0: no limit"


class WhorlParams(Params):
    """What all words share: where things are and what whorl may use of this machine."""

    home: str = Field("data", min_length=1, description=HOME)
    landing: str = Field("", description=LANDING)
    datasets: str = Field(
        "",
        description="Folder with reference data sets (short: WHORL_DATASETS); empty: none. For who reruns the "
        "published figures",
    )
    lock_wait_s: float = Field(
        60,
        ge=0,
        le=86_400,
        description="How long to wait for the warehouse, in seconds. Longer where ingests of large logs run beside",
    )
    memory_mb: int = Field(
        1024,
        ge=64,
        le=2**20,
        description="Memory that DuckDB may use, in MB. More for logs of millions of runs, where the machine has it",
    )
    threads: int = Field(
        2, ge=1, le=1024, description="Threads that DuckDB may use. As many as whorl may take from other work"
    )
    spill_mb: int = Field(20_000, ge=1, le=2**30, description=SPILL)
    query_limit_s: float = Field(30, ge=0, le=86_400, description=QUERY_LIMIT)
    port: int = Field(
        4200,
        ge=1024,
        le=65_535,
        description="Port of the Prefect server that 'whorl serve' starts. Another where it is taken",
    )
    reports_port: int = Field(
        4280, ge=1024, le=65_535, description="Port of the pages that 'whorl serve' serves. Another where it is taken"
    )
    server_idle_minutes: float = Field(5, ge=0, le=1440, description=SERVER_IDLE)
    prune: PruneParams = PruneParams()


class Settings(Params):
    """Everything that can be set, word by word."""

    whorl: WhorlParams = WhorlParams()
    jobs: JobsParams = JobsParams()
    workloads: WorkloadsParams = WorkloadsParams()
    nodes: NodesParams = NodesParams()
    advice: AdviceParams = AdviceParams()

    @property
    def warehouse(self) -> Warehouse:
        """The warehouse of the home folder."""
        common = self.whorl
        is_path = bool(common.landing) and "://" not in common.landing
        return Warehouse(
            home=ROOT / Path(common.home).expanduser(),
            landing=str(ROOT / Path(common.landing).expanduser()) if is_path else common.landing,
            lock_wait_s=common.lock_wait_s,
            memory_mb=common.memory_mb,
            threads=common.threads,
            spill_mb=common.spill_mb,
        )


@dataclass(frozen=True)
class Resolved:
    """Settings, and for each dotted key that differs from its default the place that set it."""

    settings: Settings
    origins: dict[str, str]


def load_settings(flags: Mapping[str, Any] | None = None, *, conf: Path = ROOT / "conf") -> Resolved:
    """Read conf/, conf/local/ and the environment; `flags` (nested like the settings) win over all.

    Raises BadSetting for an unknown key or a wrong value: one line with place, key and what is allowed."""
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for place, values in _layers(conf, dict(flags or {})):
        for key, value in leaves(values).items():
            is_empty_heading = value is None and any(known.startswith(f"{key}.") for known in origins)
            if not is_empty_heading:
                origins = {**{known: at for known, at in origins.items() if known != key}, key: place}  # last set, last
        merged = overlaid(merged, values)
    try:
        settings = Settings(**merged)
    except ValidationError as error:
        raise BadSetting(explain(error, Settings, origins)) from error
    ours, defaults = leaves(settings.model_dump()), leaves(Settings().model_dump())
    for key, value in leaves(merged).items():
        if isinstance(value, bool) and not isinstance(ours.get(key), bool):  # pydantic would take true for 1
            raise BadSetting(explain_value(key, value, "it is no number", Settings, origins))
    return Resolved(settings, {key: origins[key] for key in ours if key in origins and ours[key] != defaults.get(key)})


def leaves(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted key to value, without the inner nodes."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        inner = leaves(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {f"{prefix}{key}": value}
        flat |= inner
    return flat


def _layers(conf: Path, flags: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for folder in (conf, conf / "local"):
        for file in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
            if file.suffix == ".yml":
                raise BadSetting(f"{file}: is not read; expected {file.stem}.yaml; rename it")
            if file.stem not in Settings.model_fields:
                words = ", ".join(f"{word}.yaml" for word in Settings.model_fields)
                raise BadSetting(f"{file}: no word of that name; expected {words}; rename or remove the file")
            yield str(file.relative_to(conf.parent)), {file.stem: _yaml(file)}
    yield from _environment()
    yield "flag", flags


def _yaml(file: Path) -> dict[str, Any]:
    try:
        content = yaml.load(file.read_text(encoding="utf-8"), Loader=LOADER) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadSetting(f"{file}: not YAML: {' '.join(str(error).split())}; mend that line") from error
    except OSError as error:
        raise BadSetting(f"{file}: cannot be read ({error.strerror}); expected a file; check its rights") from error
    if not isinstance(content, dict):
        raise BadSetting(f"{file}: holds a {type(content).__name__}; expected keys and values, such as 'summary:'")
    return {str(key): value for key, value in content.items()}


def _environment() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in sorted(name for name in os.environ if name.startswith(PREFIX)):
        word, *path = [SHORT[name]] if name in SHORT else name.removeprefix(PREFIX).lower().split("__")
        if name in SHORT:
            word, path = "whorl", [word]
        if word not in Settings.model_fields or not path:
            keys = ", ".join(f"{PREFIX}{word.upper()}__<KEY>" for word in Settings.model_fields)
            raise BadSetting(f"{name}: no such setting; expected {', '.join(SHORT)} or {keys}")
        value = _value(name, os.environ[name])
        for key in reversed(path):
            value = {key: value}
        yield name, {word: value}


def _value(name: str, text: str) -> Any:
    """Lists and mappings are written as in YAML; of all else pydantic makes what the key needs."""
    try:
        return yaml.safe_load(text) if text[:1] in ("[", "{") else text
    except yaml.YAMLError as error:
        problem = " ".join(str(error).split())
        raise BadSetting(f"{name}: {text!r} is not YAML: {problem}; expected [one, two] or {{key: value}}") from error


def overlaid(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Both, key by key; `above` wins. A key with nothing below it changes nothing where keys and values stand."""
    joined = dict(below)
    for key, value in above.items():
        old = joined.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            joined[key] = overlaid(old, value)
        elif not (isinstance(old, dict) and value is None):
            joined[key] = value
    return joined


INDENT = "  "


def commented_defaults(model: type[BaseModel]) -> str:
    """The defaults of one word as YAML, each key below a comment with its meaning and what is allowed."""
    title = (model.__doc__ or "").strip().splitlines()[0]
    return "\n".join([f"# {title}", *_lines(model(), "")]) + "\n"


def _lines(params: BaseModel, indent: str) -> Iterator[str]:
    for name, field in type(params).model_fields.items():
        value = getattr(params, name)
        if isinstance(value, BaseModel):
            yield f"{indent}# {(type(value).__doc__ or '').strip().splitlines()[0]}"
            yield f"{indent}{name}:"
            yield from _lines(value, indent + INDENT)
            continue
        yield f"{indent}# {field.description} [{allowed_values(field)}]"
        if item := item_model(field.annotation):
            yield from _items(name, value, item, indent)
            continue
        yield f"{indent}{name}: {_in_a_line(list(value) if isinstance(value, tuple) else value)}"


def _items(name: str, values: Sequence[BaseModel], item: type[BaseModel], indent: str) -> Iterator[str]:
    """A list of models: what their keys mean, then one line for each."""
    for key, field in item.model_fields.items():
        yield f"{indent}#   {key}: {field.description} [{allowed_values(field)}]"
    yield f"{indent}{name}:{'' if values else ' []'}"
    for value in values:
        yield f"{indent}{INDENT}- {_in_a_line(value.model_dump(mode='json'))}"


def _in_a_line(value: object) -> str:
    written: str = yaml.safe_dump(value, default_flow_style=True, width=1000, sort_keys=False)
    return written.removesuffix("...\n").strip()
