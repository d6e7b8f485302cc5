from tasks.figures import put, put_mean, rows_of


def test_a_missing_figure_is_none_with_its_reason():
    figures = {}
    put(figures, "a", 0.0)
    put(figures, "b", float("nan"))
    put_mean(figures, "c", [], "one round only")
    put_mean(figures, "d", [1.0, None, 1.0])
    put_mean(figures, "e", [0.5])
    none = {"b": None, "b.reason": "not a number", "c": None, "c.reason": "one round only"}
    assert figures == {"a": 0.0, **none, "d": 1.0, "d.deviation": 0.0, "e": 0.5}


def test_the_rows_of_figures_are_numbers_and_missing_ones():
    rows = rows_of({"n": 3, "name": "text", "a": None, "a.reason": "why"})
    assert rows["key"].tolist() == ["n", "a"] and rows["reason"].dropna().tolist() == ["why"]
    assert rows["value"].isna().tolist() == [False, True]
