"""What nodes are measured against: the medians of a stated set of nodes, frozen with the model and kept as JSON.

A node's score is a ratio to this fleet, so a machine that joins moves no other; only a new reference does."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.nodes.ranking.params import ScoreParams
from tasks.nodes.type_tables import Bools, Floats, NodeTables, TypeTable, group_medians

NOT_AVERAGES = frozenset({"min", "max", "std", "stdev", "stddev", "mdev", "variance"})  # words of names: how runs vary
PER_SECOND = "/s"  # how base units of rates end
TIMES = ("s", "s/B")  # base units of what takes long
USUAL = 0.5  # share of the nodes, from which an aspect is expected of all
COLUMNS = ["type", "aspect", "metric", "unit", "orientation", "median", "weight", "n_nodes", "n_executions"]


@dataclass(frozen=True)
class TypeReference:
    """The reference of the metrics of one type, in the order asked for; weight 0: does not count. (m,) each."""

    median: Floats
    weight: Floats


@dataclass(frozen=True)
class ReferenceFleet:
    """table: one row a type and metric: type, aspect, metric, unit, orientation, median (in unit), weight, n_nodes and
    n_executions behind the median. stated: which nodes these are, in words."""

    table: pd.DataFrame
    stated: str

    def of(self, table: TypeTable) -> TypeReference:
        """For the metrics of a table; a metric that the fleet lacks has NaN and weight 0."""
        own = self.table[self.table["type"] == table.name].set_index("metric")[["median", "weight"]]
        found = own.reindex(list(table.metrics))
        return TypeReference(
            found["median"].to_numpy(dtype=np.float64), found["weight"].fillna(0.0).to_numpy(dtype=np.float64)
        )

    @property
    def counted(self) -> frozenset[tuple[str, str]]:
        """The types and metrics that count in scores."""
        return counted_in(self.table)


def learn_reference(tables: NodeTables, is_reference: Bools, params: ScoreParams, stated: str = "") -> ReferenceFleet:
    """The medians over nodes of each node's medians, from the executions of the mask (n_executions,).

    Which metrics count: see `counting`; their median must be above 0, as ratios need it. Nodes count alike, however
    often they ran."""
    rows = []
    for table in tables.of_executions(is_reference).tables:
        medians = group_medians(table.natural, table.nodes, len(tables.nodes))
        counts = counting(table, params)
        for at, metric in enumerate(table.metrics):
            own = medians[~np.isnan(medians[:, at]), at]
            median = float(np.median(own)) if len(own) else np.nan
            told = (table.name, table.aspect, metric, table.units[at], table.orientation[at])
            n_executions = int((~np.isnan(table.natural[:, at])).sum())
            rows.append((*told, median, float(counts[at] and median > 0), len(own), n_executions))
    return ReferenceFleet(pd.DataFrame(rows, columns=COLUMNS), stated or "all nodes given")


def counting(table: TypeTable, params: ScoreParams) -> Bools:
    """Which metrics of a type count in its score: (m,).

    Average rates, else average times, or all if params.basis is `all`. A metric of which neither more nor less is
    better (a rate that is set, a processor's use) counts only in a type that has no other."""
    is_directed = np.ones(len(table.metrics), dtype=bool) if table.is_directed is None else table.is_directed
    if not is_directed.any():
        is_directed = ~is_directed
    if params.basis == "all":
        return is_directed
    is_average = np.array([not NOT_AVERAGES & set(metric.split("_")) for metric in table.metrics], dtype=bool)
    is_rate = np.array([unit.endswith(PER_SECOND) for unit in table.units], dtype=bool)
    is_time = np.array([unit in TIMES for unit in table.units], dtype=bool)
    for chosen in (
        is_directed & is_average & is_rate & (table.orientation > 0),
        is_directed & is_average & is_time & (table.orientation < 0),
        is_directed & is_average,
    ):
        if chosen.any():
            return np.asarray(chosen)
    return is_directed


def counted_in(reference: pd.DataFrame) -> frozenset[tuple[str, str]]:
    """The types and metrics of a reference (ReferenceFleet.table) that count in scores: those with a weight."""
    own = reference[reference["weight"] > 0]
    return frozenset(zip(own["type"].astype(str), own["metric"].astype(str), strict=True))


def usual_aspects(reference: pd.DataFrame) -> frozenset[str]:
    """The aspects that half of the nodes of a reference or more ran: what a node is expected to have run."""
    own = reference[reference["weight"] > 0]
    n_nodes = own.groupby(own["aspect"].astype(str))["n_nodes"].max()
    return frozenset(str(aspect) for aspect in n_nodes.index[n_nodes >= USUAL * n_nodes.max()])


def aspect_weights(aspects: tuple[str, ...], given: Mapping[str, float]) -> Floats:
    """The weight of each aspect: 1 where nothing is said."""
    return np.array([given.get(aspect, 1.0) for aspect in aspects], dtype=np.float64)


FORMAT, VERSION = "whorl.nodes.reference", 1
NUMBERS = ("orientation", "median", "weight")
COUNTS = ("n_nodes", "n_executions")


def save_reference(reference: ReferenceFleet, file: Path) -> None:
    """Write a reference fleet; a median that nobody measured is null."""
    rows = reference.table.astype(object).where(reference.table.notna(), None).to_dict("records")
    main = {"format": FORMAT, "version": VERSION, "stated": reference.stated, "rows": rows}
    file.write_text(json.dumps(main, indent=1, default=_number), encoding="utf-8")


def load_reference(file: Path) -> ReferenceFleet:
    """What save_reference wrote. Raises BadInput if the file is missing, damaged or foreign."""
    try:
        main = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(main, dict) or (main.get("format"), main.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"not version {VERSION} of the format {FORMAT}")
        table = pd.DataFrame(main["rows"], columns=COLUMNS)
        table = table.astype({**dict.fromkeys(NUMBERS, np.float64), **dict.fromkeys(COUNTS, np.int64)})
        return ReferenceFleet(table, str(main["stated"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"no reference fleet ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(file, problem, "what 'whorl nodes preprocess' wrote", "preprocess again") from error


def _number(value: object) -> float:
    if isinstance(value, np.generic):
        return float(value.item())
    raise TypeError(f"{type(value).__name__} is no number; expected the values of a reference")
