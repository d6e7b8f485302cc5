"""Logs for the tests of figures and pages."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.params import SummaryParams
from tasks.jobs.summary import summarise
from tasks.warehouse.connection import transaction, writing
from tests.jobs.synthetic import SimulatedJob, simulate_runs


class Tags(HTMLParser):
    """Collects tags, the addresses that a browser would fetch, and what is left open."""

    VOID = ("meta", "link", "br", "path", "use", "rect", "circle", "image")

    def __init__(self):
        super().__init__()
        self.names, self.addresses, self.open = set(), [], []

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.addresses += [value for key, value in attrs if key in ("src", "href", "xlink:href", "srcset", "data")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="session")
def tags_of():
    """A function that reads a page and returns its Tags."""

    def read(page):
        tags = Tags()
        tags.feed(page)
        return tags

    return read


@pytest.fixture(scope="session")
def words_of():
    """A function that returns the visible text of a page on one line."""

    def read(page):
        text = re.sub(r"<(style|svg).*?</\1>", " ", page, flags=re.DOTALL)
        return " ".join(re.sub(r"<[^>]+>", " ", text).split())

    return read


@pytest.fixture(scope="session")
def put():
    """A function that puts rows into tables of jobs and returns the warehouse."""

    def fill(warehouse, source="log", **tables):
        with writing(warehouse) as connection, transaction(connection):
            for name, rows in tables.items():
                new_rows = pd.DataFrame(rows).assign(source=source)
                connection.register("new_rows", new_rows)
                connection.execute(f"INSERT INTO jobs.{name} BY NAME SELECT * FROM new_rows").fetchall()
                connection.unregister("new_rows")
        return warehouse

    return fill


@pytest.fixture
def summarised(job_log):
    """A function that puts runs into a warehouse, summarises them and returns the warehouse."""

    def fill(runs, *, source="log"):
        warehouse = job_log(runs, source=source)
        summarise(warehouse, source, SummaryParams())
        return warehouse

    return fill


@pytest.fixture(scope="session")
def varied_runs() -> pd.DataFrame:
    """Eight jobs from steady to varying, 60 runs each, some of them slow."""
    jobs = [SimulatedJob(name=f"job {i}", n_runs=60, log_deviation=0.02 * 2**i, slow_share=0.02 * i) for i in range(8)]
    return simulate_runs(jobs, np.random.default_rng(8))
