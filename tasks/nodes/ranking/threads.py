"""Scores of processors by how many threads are at work: a task uses one, a cluster all of them.

The aspect `cpu` of a ranking mixes both, which is right for one number of a node, and wrong for a task's runtime. What
says how many threads a metric had: its benchmark's command, or its name, as the tools and SpareCores name them."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from tasks.nodes.answers import learn
from tasks.nodes.history import History, load_history, read_results
from tasks.nodes.params import PreprocessParams, ReadParams, ScoreParams
from tasks.nodes.preprocess.fitting import tables_of
from tasks.nodes.ranking.scores import ReferenceFleet, log_ratios
from tasks.nodes.type_tables import NodeTables, group_medians, is_unstressed, type_names, weighted_mean
from tasks.warehouse.place import Warehouse

Threads = Literal["one", "all", "unsaid"]
ASPECTS: dict[Threads, str] = {"one": "cpu_one_thread", "all": "cpu_all_threads"}
COLUMNS = ["node", "machine_type", "aspect", "score", "n_metrics"]
COMMAND = re.compile(r"(?:--threads|--cpu|num_threads|number of threads|threads)[=: ]+(\d+)", re.IGNORECASE)
SETTING = re.compile(r"(?:^|_)threads_(\d+)(?:_|$)")
SINGLE, MULTI = re.compile(r"single_?(core|thread)"), re.compile(r"multi_?(core|thread)")
SINGLE_BENCHMARKS, MULTI_BENCHMARKS = ("stressngsinglecore",), ("stressng",)
COUNTED = ("stressngfull", "stressng-benchmarks")  # the last part of a metric's name says how many workers it had
MOST = ("n", "most")


def threads_of(benchmark: str, metric: str, template: str = "") -> Threads:
    """How many threads a metric of a benchmark had. template: its command, or the settings that its log prints.

    More than one counts as all: tools ask for as many as there are, or for more."""
    if told := COMMAND.search(template) or SETTING.search(metric):
        return "one" if int(told[1]) == 1 else "all"
    if benchmark in SINGLE_BENCHMARKS or SINGLE.search(metric):
        return "one"
    if benchmark in MULTI_BENCHMARKS or MULTI.search(metric):
        return "all"
    if benchmark in COUNTED:
        last = metric.rpartition("_")[2]
        return "one" if last == "1" else "all" if last in MOST else "unsaid"
    return "unsaid"


def thread_scores(tables: NodeTables, reference: ReferenceFleet, templates: Mapping[str, str]) -> pd.DataFrame:
    """Scores of each node for one thread and for all: node, machine_type, aspect, score, n_metrics.

    A score of 1 is that of the reference. As in `scores`: geometric means over metrics, the median over executions, the
    mean over benchmark types, each type once. tables: of executions against which nothing is known. templates: of
    types, by name. A node without a metric of one kind has no row of it."""
    rows = []
    cpu = [table for table in tables.tables if table.aspect == "cpu"]
    for threads, aspect in ASPECTS.items():
        each, n_metrics = [np.full((len(tables.nodes), 0), np.nan)], np.zeros(len(tables.nodes), dtype=np.int64)
        for table in cpu:
            benchmark, template = table.name.partition("@")[0], templates.get(table.name, "")
            is_its = np.array([threads_of(benchmark, name, template) == threads for name in table.metrics])
            weight = reference.of(table)[1] * is_its
            if not weight.any():
                continue
            ratios = log_ratios(table, reference)
            of_node = group_medians(weighted_mean(ratios, weight)[:, None], table.nodes, len(tables.nodes))
            each.append(of_node)
            n_metrics += np.where(np.isnan(of_node[:, 0]), 0, int((weight > 0).sum()))
        log_scores = np.concatenate(each, axis=1)  # (n_nodes, n_types)
        means = weighted_mean(log_scores, np.ones(log_scores.shape[1]))
        rows += [
            (node, kind, aspect, float(np.exp(mean)), int(n))
            for node, kind, mean, n in zip(tables.nodes, tables.machine_types, means, n_metrics, strict=True)
            if not np.isnan(mean)
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def thread_scores_of(history: History) -> pd.DataFrame:
    """The same from executions that completed, neither stressed nor disturbed; all nodes are the reference."""
    preprocessor, reference = learn(history, PreprocessParams(), ScoreParams())
    calm = is_unstressed(history.executions).to_numpy(dtype=bool)
    templates = history.executions["template"].fillna("").astype(str)
    by_type = dict(zip(type_names(history.executions), templates, strict=True))
    return thread_scores(tables_of(history, preprocessor).of_executions(calm), reference, by_type)


def thread_scores_of_files(paths: Sequence[str]) -> pd.DataFrame:
    """The same from results of benchmarks in files and folders that a reader of `nodes` knows."""
    return thread_scores_of(read_results(list(paths), ReadParams(), "").history)


def thread_scores_of_source(warehouse: Warehouse, source: str) -> pd.DataFrame:
    """The same from the executions of a source in the warehouse."""
    return thread_scores_of(load_history(warehouse, source))
