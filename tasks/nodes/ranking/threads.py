"""Scores of processors by how many threads are at work: a task uses one, a cluster all of them.

The aspect `cpu` of a ranking mixes both, which is right for one number of a node, and wrong for a task's runtime. What
says how many threads a metric had: its benchmark's command, or its name, as the tools and SpareCores name them."""

import re
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from tasks.nodes.history import History
from tasks.nodes.params import ScoreParams
from tasks.nodes.ranking.node_scores import ReferenceFleet
from tasks.nodes.ranking.places import ALL, rank_nodes
from tasks.nodes.type_tables import NodeTables, type_names

Threads = Literal["one", "all", "unsaid"]
ASPECTS: dict[Threads, str] = {"one": "cpu_one_thread", "all": "cpu_all_threads"}
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


def by_threads(tables: NodeTables, history: History) -> NodeTables:
    """The tables of processors by how many threads a metric had, as aspects cpu_one_thread and cpu_all_threads.

    tables: of executions of the history. What says nothing of its threads is in neither."""
    template = history.executions["template"].fillna("").astype(str)
    templates = dict(zip(type_names(history.executions), template, strict=True))
    parts = []
    for table in tables.tables:
        benchmark, command = table.name.partition("@")[0], templates.get(table.name, "")
        threads = np.array([threads_of(benchmark, metric, command) for metric in table.metrics])
        for kind, aspect in ASPECTS.items():
            if table.aspect == "cpu" and (threads == kind).any():
                parts.append(replace(table.of_metrics(threads == kind), aspect=aspect))
    return replace(tables, tables=tuple(parts))


def rank_by_threads(
    tables: NodeTables, history: History, reference: ReferenceFleet, params: ScoreParams
) -> pd.DataFrame:
    """The rows of rank_nodes for one thread and for all; none where the aspect `cpu` is of one of them alone."""
    apart = by_threads(tables, history)
    if {table.aspect for table in apart.tables} != set(ASPECTS.values()):
        apart = replace(apart, tables=())
    ranked = rank_nodes(apart, reference, params)
    return ranked[ranked["aspect"] != ALL]
