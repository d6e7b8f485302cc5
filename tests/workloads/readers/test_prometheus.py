"""A Prometheus server: series to runs and rates, and a server that is slow, wrong or gone."""

import json
import math
import re
from urllib.parse import parse_qs

import httpx
import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.intake import http_server
from tasks.intake.http_server import Patience
from tasks.workloads.intake import read_file
from tasks.workloads.params import PrometheusParams, ReadParams, RegularParams
from tasks.workloads.prepared import file_labels, prepare
from tasks.workloads.readers.prometheus import MOST_POINTS, PrometheusReader

URL = "http://127.0.0.1:9090"
START = 1_700_000_000
LABELS = {"instance": "a:9100", "job": "node"}
QUICK = Patience(timeout_s=30, tries=3, backoff_s=0)
ASKED = {"step_s": 1, "match": ['{job="node"}'], "start": str(START), "end": str(START + 9)}


class Server:
    """Answers as the API does. series: labels with a function of the Unix time (None: no sample)."""

    def __init__(self, series, metadata=None):
        self.series, self.metadata, self.questions = series, metadata or {}, []

    def __call__(self, request):
        route = request.url.path.removeprefix("/api/v1/")
        asked = {key: one[0] for key, one in parse_qs(request.content.decode()).items()}
        self.questions.append((route, asked))
        if route == "series":
            return answer([labels for labels, _ in self.series])
        if route == "metadata":
            return answer({name: [{"type": kind}] for name, kind in self.metadata.items()})
        if route == "targets":
            return answer({"activeTargets": [{"scrapeInterval": "5s"}, {"scrapeInterval": "1m"}]})
        times = np.arange(float(asked["start"]), float(asked["end"]) + 1e-6, float(asked["step"]))
        found = [
            {"metric": labels, "values": [[at, str(value)] for at in times if (value := of(at)) is not None]}
            for labels, of in self.series
        ]
        return answer({"resultType": "matrix", "result": [one for one in found if one["values"]]})


def answer(data):
    return httpx.Response(200, json={"status": "success", "data": data})


def named(name, **labels):
    return {"__name__": name, **LABELS, **labels}


def read(server, url=URL, patience=QUICK, most_points=MOST_POINTS, **params):
    asked = ReadParams(prometheus=PrometheusParams(**(ASKED | params)), regular=RegularParams(min_samples=1))
    reader = PrometheusReader(httpx.MockTransport(server), patience=patience, most_points=most_points)
    reading = reader.read(url, asked)
    return prepare(reading, file_labels(url, asked), asked.regular)


def column(run, name):
    values = run.telemetry.values[:, run.telemetry.names.index(name)]
    return [None if math.isnan(value) else round(float(value), 6) for value in values]


def test_counters_become_rates_from_the_first_sample_on_and_gauges_stay():
    server = Server(
        [(named("requests"), lambda at: 3 * at), (named("load"), lambda at: at - START)], {"requests": "counter"}
    )
    (run,), refused = read(server)
    assert (column(run, "requests"), column(run, "load")) == ([3] * 10, list(range(10)))
    assert (run.telemetry.run_id, run.telemetry.machine) == ("a:9100 2023-11-14T22:13:20Z", "a:9100")
    assert (run.n_rows, len(refused)) == (11, 0)


@pytest.mark.parametrize("data", [7, [7], {"activeTargets": 7}, {"result": [{"values": [["x", "\x00"]]}]}])
def test_an_answer_of_another_shape_is_one_line(data):
    with pytest.raises(BadInput, match="an answer of another shape"):
        read(lambda request: answer(data), step_s=0)


def test_a_counter_that_falls_has_no_rate_there():
    server = Server([(named("x_total"), lambda at: 5 * (at - START + (100 if at < START + 4 else 0))),
                     (named("load"), lambda at: 1)])  # fmt: skip
    (run,), _ = read(server)
    assert (column(run, "x"), run.n_resets) == ([5, 5, 5, 5, None, 5, 5, 5, 5, 5], 1)


def test_each_instance_is_a_run_and_labels_are_folded_into_names():
    series = (named("cpu_total", cpu="0", mode="user"), named("fs", mount="/"), {**named("up"), "instance": "b:9100"})
    runs, _ = read(Server([(labels, lambda at: at) for labels in series]))
    assert [run.telemetry.machine for run in runs] == ["a:9100", "b:9100"]
    assert runs[0].telemetry.names == ("cpu.cpu_0.mode_user", "fs.mount_root")  # labels are folded into the name


def test_a_long_range_is_read_in_parts_and_gives_the_same():
    def make():
        return Server([(named("x_total"), lambda at: (at - START + 2) ** 2)])

    whole, parts = make(), make()
    (one,), _ = read(whole, end=str(START + 5999))
    (other,), _ = read(parts, end=str(START + 5999), most_points=1000)
    assert sum(route == "query_range" for route, _ in whole.questions) == 1
    assert sum(route == "query_range" for route, _ in parts.questions) == 7
    assert np.array_equal(one.telemetry.values, other.telemetry.values)


def test_values_that_are_no_numbers_and_times_without_samples_are_missing():
    def gap(at):
        return {2: None, 3: None, 5: "NaN", 6: "+Inf"}.get(at - START, at - START)

    (run,), _ = read(Server([(named("load"), gap), (named("up"), lambda at: None if gap(at) is None else 1)]))
    assert column(run, "load") == [0, 1, None, None, 4, None, None, 7, 8, 9]
    assert (run.n_missed, run.n_rows) == (2, 8)


def test_a_series_without_a_sample_in_the_range_does_not_lose_the_others():
    """As servers that speak Prometheus's language may say it: a series with an empty list."""
    result = [{"metric": named("load"), "values": [[START, "3"]]}, {"metric": named("idle"), "values": []}]
    other = Server([(named("load"), float), (named("idle"), float)])

    def server(request):
        told = other(request)
        return answer({"result": result}) if request.url.path.endswith("query_range") else told

    [run], _ = read(server)
    assert column(run, "load") == [3]


def test_native_histograms_are_listed():
    def server(request):
        response = Server([(named("load"), lambda at: 1)])(request)
        if request.url.path.endswith("query_range"):
            data = json.loads(response.content)["data"]
            data["result"].append({"metric": named("latency"), "histograms": []})
            return answer(data)
        return response

    assert read(server)[0][0].refused == ("latency: a native histogram",)


def test_the_step_is_the_shortest_scrape_interval_and_the_selector_may_stand_in_the_address():
    server = Server([(named("load"), lambda at: 1)])
    (run,), _ = read(server, url=f'{URL}?match[]={{job="x"}}', match=[], step_s=0)
    assert run.telemetry.interval_s == 5
    assert {asked["query"] for route, asked in server.questions if route == "query_range"} == {'{job="x"}'}


FAULTS = {
    "a web page": (lambda request: httpx.Response(200, text="<html>"), "a web page instead of JSON"),
    "no JSON": (lambda request: httpx.Response(200, text="oops"), "no JSON (200: oops)"),
    "a refusal": (
        lambda request: httpx.Response(400, json={"status": "error", "error": "parse error"}),
        "the server refuses the question ('parse error')",
    ),
    "no right": (lambda request: httpx.Response(401), "the server refuses to answer (401)"),
    "a failing server": (
        lambda request: httpx.Response(503, text="starting"),
        "the server fails (503) starting, 3 times",
    ),
    "no series": (Server([]), 'no series for {job="node"}'),
    "no sample": (Server([(named("load"), lambda at: None)]), "no sample in this range"),
}


@pytest.mark.parametrize(("server", "problem"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_one_line_with_the_address(server, problem):
    with pytest.raises(BadInput, match=re.escape(f"{URL}: {problem}")) as caught:
        read(server)
    assert "\n" not in str(caught.value)


WRONG = {
    "no selector": ({"match": []}, "no selector"),
    "no time": ({"start": "yesterday"}, "'yesterday' is no time"),
    "backwards": ({"start": str(START + 99)}, "the range ends before it starts"),
    "too many series": ({"max_series": 1}, "2 series; expected at most 1"),
}


@pytest.mark.parametrize(("params", "problem"), WRONG.values(), ids=WRONG)
def test_a_wrong_question_is_not_asked(params, problem):
    server = Server([(named("a"), lambda at: 1), (named("b"), lambda at: 1)])
    with pytest.raises(BadInput, match=problem):
        read(server, **params)
    assert [route for route, _ in server.questions if route == "query_range"] == []


def test_an_answer_that_would_fill_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(http_server, "MAX_ANSWER_BYTES", 10)
    with pytest.raises(BadInput, match="an answer of more than 10 bytes"):
        read(Server([(named("load"), lambda at: 1)]))


def test_passwords_do_not_show():
    with pytest.raises(BadInput) as caught:
        read(lambda request: httpx.Response(401), url="http://user:secret@127.0.0.1:9090")
    assert "secret" not in str(caught.value)


def test_a_saved_answer_of_a_server_is_read_like_the_server_itself(tmp_path):
    path = tmp_path / "answer.json"
    rows = {"requests_total": [0, 30, 60, 120], "load": [1, 2, 3, 4]}
    result = [
        {"metric": named(name), "values": [[START + 10 * at, str(value)] for at, value in enumerate(values)]}
        for name, values in rows.items()
    ]
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}))
    (run,), refused = read_file(str(path), ReadParams(regular=RegularParams(min_samples=1)))
    assert (column(run, "requests"), column(run, "load")) == ([3, 3, 6], [2, 3, 4])
    assert (run.telemetry.interval_s, run.telemetry.machine, len(refused)) == (10, "a:9100", 0)


@pytest.mark.parametrize("data", ['{"result": 7}', '{"result": []}', '{"result": [{"values": [["x", "1"]]}]}'])
def test_a_file_that_holds_another_answer_is_one_line(tmp_path, data):
    path = tmp_path / "answer.json"
    path.write_text(f'{{"resultType": "matrix", "data": {data}}}')
    with pytest.raises(BadInput, match="expected what a Prometheus server answers to query_range"):
        read_file(str(path), ReadParams())
