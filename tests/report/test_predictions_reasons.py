"""The parts of the page about predictions that say why, and what if: their rows in words, none taken as markup."""

import re
from html import unescape

import pandas as pd
import pytest

from tasks.report.predictions_page import render_predictions
from tasks.report.predictions_words import change_rows

HOSTILE = "<script>alert('x')</script> <img src=x> $x$"
MODEL = "runtime-1-a"


def reason(job, run_id, words, *, rank=1, factor=2.0, question="runtime"):
    same = {"model_id": MODEL, "family": "input", "feature": "input_bytes", "compared_with": "the job"}
    times = {"runtime_s": 90.0 if run_id else None, "usual_s": 10.0, "expected_s": 30.0}
    asked = {"question": question, "rank": rank, "factor": factor, "words": words}
    return {"group_key": job, "run_id": run_id, **same, **asked, **times}


def family(question, name, share, rank=1):
    counts = {"n_runs": 40, "n_long": 5, "typical_factor": 1.3, "first_share": None}
    return {"question": question, "family": name, "rank": rank, "share": share, "model_id": MODEL, **counts}


def check(order, mrr, low=None, high=None):
    return {"order_name": order, "cause": "all", "mrr": mrr, "low": low, "high": high, "n": 12, "model_id": MODEL}


def insight(words, *, reason=None):
    return {
        "kind": "ratio",
        "insight": "inputs",
        "rank": 1,
        "verdict": "cannot be told" if reason else "holds",
        "rho": None if reason else 0.4,
        "measured_verdict": "does not hold",
        "measured_rho": -0.2,
        "n_runs": 40,
        "reason": reason,
        "words": words,
        "model_id": MODEL,
    }


def what_if(name, *, n_pairs=9, reason=None):
    same = {"scenario": name, "model_id": MODEL}
    counts = {"n_runs": 200, "n_jobs": 8}
    change = {"measure": "p95_s", "edits": "spare_multiplier=0", "before": 2.0, "after": 3.0, "change": 1.0}
    pairs = {"n_pairs": n_pairs, "n_jobs": 3, "mean_measured": 0.0, "mean_predicted": 0.5, "right_share": 0.75}
    moves = [(0, 0, 7), (0, 1, 3), (1, 1, 10)]
    return {
        "what_ifs": [{**same, **counts, **change, "low": 0.5, "high": 1.5, "parameters": "{}"}],
        "what_if_pairs": [{**same, **pairs, "reason": reason}],
        "what_if_moves": [
            {**same, "kind": "ratio", "from_shape": a, "to_shape": b, "n_runs": n, "n_jobs": 1} for a, b, n in moves
        ],
        "what_if_claims": [
            {**same, "about": "can", "place": 0, "claim": f"it supports {name}"},
            {**same, "about": "cannot", "place": 0, "claim": f"it does not prove {name}"},
        ],
    }


def page_of(warehouse):
    return render_predictions(warehouse, "log").read_text()


@pytest.fixture
def log(job_log):
    return job_log([{"runtime_s": 10.0}] * 4)


@pytest.fixture
def full(log, put):
    """A source with rows in every table of these parts, each named by HOSTILE."""
    return put(
        log,
        reasons=[reason(HOSTILE, HOSTILE, HOSTILE), reason(HOSTILE, None, HOSTILE, question="variation")],
        cause_families=[family("runtime", HOSTILE, 1.0)],
        cause_checks=[check("reasons", 0.9, 0.8, 1.0), check("random", 0.3)],
        insights=[insight(HOSTILE, reason=HOSTILE)],
        **what_if(HOSTILE, n_pairs=0, reason=HOSTILE),
    )


def test_reasons_and_answers_are_never_taken_as_markup(full):
    page = page_of(full)
    assert not re.search(r"<(script|img)\b", page)
    assert page.count("&lt;script&gt;") >= 10


def test_parts_with_rows_say_no_more_how_to_make_them(full, words_of):
    words = words_of(page_of(full))
    for told in ("Nothing is explained", "not written yet", "No change was tried"):
        assert told not in words


def test_a_run_has_its_first_reason_to_be_longer_even_after_one_to_be_shorter(log, words_of, put):
    shorter = reason("job", "r1", "a smaller input", factor=0.2)
    put(log, reasons=[shorter, reason("job", "r1", "a higher load", rank=2), reason("job", "r2", "no", factor=0.5)])
    words = words_of(page_of(log))
    assert "job: r1 90 s 10 s 30 s a higher load" in words
    assert "job: r2 90 s 10 s 30 s nothing that was known at submission" in words
    assert "a smaller input" not in words


def test_checks_stand_beside_the_orders_that_look_at_no_run(log, words_of, put):
    lead = check("frequency", 0.7, -0.04, 0.09)
    put(log, cause_families=[family("runtime", "input", 0.6), family("ratio", "input", 0.3)])
    put(log, cause_checks=[check("random", 0.3), check("reasons", 0.8, 0.7, 0.9), lead])
    words = words_of(page_of(log))
    assert "the reasons of each run 0.80 0.70 to 0.90" in words
    assert "recorded before 0.70 reasons lead by -0.04 to 0.09" in words
    assert "a random order 0.30 –" in words
    assert "input 60.0 % 1.30 × – 30.0 % –" in words


def test_an_insight_has_both_verdicts_and_the_reason_why_it_cannot_be_told(log, words_of, put):
    put(log, insights=[insight("larger inputs vary more", reason="the log has no such feature")])
    words = words_of(page_of(log))
    assert "larger inputs vary more the log has no such feature ratio cannot be told – – does not hold -0.20" in words


def test_no_number_on_the_page_has_an_exponent_or_is_a_nothing_below_zero(log, put, words_of):
    tiny = {"mae_log_model": 0.00005, "mae_log_no_change": 1e-9, "mae_log_mean_change": 0.0, "mean_measured": -0.001}
    rows = what_if("no_spare")
    rows["what_if_pairs"][0] |= tiny
    money = {"measure": "money", "before": 0.00005, "after": 0.000049, "change": -0.000001, "low": -5e-7, "high": 2e-7}
    rows["what_ifs"].append({**rows["what_ifs"][0], **money})
    put(log, insights=[insight("inputs") | {"rho": -0.001, "low": -0.004, "high": 0.004}], **rows)
    words = unescape(words_of(page_of(log)))
    assert "0.00005 < 0.000001 0" in words
    assert "money 0.00005 0.000049 −0.000001 > −0.000001 to < +0.000001" in words
    assert "0.00 0.00 to 0.00" in words
    assert not re.search(r"\d[eE][-+]\d|-0\.0+\b(?!\d)", words)


def test_a_what_if_has_predicted_beside_measured_and_what_it_can_and_cannot_claim(log, words_of, put):
    page = page_of(put(log, **what_if("no_spare")))
    words = words_of(page)
    assert "no_spare 9 1.65 × 1.00 × 75.0 %" in words
    assert "95th percentile 2 s 3 s +1 s +500 ms to +1.5 s" in words
    assert words.index("it supports no_spare") < words.index("it does not prove no_spare")
    assert "n = 20 runs, 15.0 % moved" in page


def test_ids_of_the_drawings_of_two_changes_do_not_meet(log, put):
    page = page_of(put(put(log, **what_if("no_spare")), **what_if("newest_sku")))
    asked = set(re.findall(r"""(?:url\(|href=")#([^")]+)""", page))  # ids that nothing asks for may stand twice
    ids = [name for name in re.findall(r' id="([^"]+)"', page) if name in asked]
    assert len(ids) == len(set(ids)) > 3


def test_a_what_if_that_was_not_measured_says_why(log, words_of, put):
    words = words_of(page_of(put(log, **what_if("no_spare", n_pairs=0, reason="no run was done again"))))
    assert "no_spare 0 no run was done again" in words


def test_a_change_without_a_figure_is_left_out_and_a_falling_one_has_its_sign():
    nothing = {"before": None, "after": None, "change": None, "low": None, "high": None}
    fallen = {"before": 0.5, "after": 0.25, "change": -0.25, "low": None, "high": None}
    table = pd.DataFrame([nothing, fallen], index=pd.Index(["money", "outlier_share"]), dtype=float)
    told = {"measure": "outliers (ratio)", "before": "50.0 %", "after": "25.0 %", "change": "−25.0 %", "interval": "–"}
    assert change_rows(table) == [told]
