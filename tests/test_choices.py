"""What is said of an identification, in words."""

import pytest

from tasks.choices import identification_words

REDIS = {"workload": "redis", "share": 0.7, "probability": 0.97}
NGINX = {"workload": "nginx", "share": 0.3, "probability": 0.4}


@pytest.mark.parametrize(
    ("present", "more", "words"),
    [
        ([REDIS], {}, "redis (97.0 % sure)"),
        ([REDIS, NGINX], {}, "redis (97.0 % sure) + perhaps nginx (40.0 % sure)"),
        ([REDIS], {"statement": "known and something unknown", "unknown_score": 0.8},
         "redis (97.0 % sure), and something unknown (80.0 % sure)"),
        (None, {"workload": "redis", "confidence": 0.1}, "perhaps redis (10.0 % sure)"),
        ([], {"is_known": False, "confidence": 0.9}, "unknown (90.0 % sure)"),
    ],
)  # fmt: skip
def test_a_name_without_even_odds_is_a_perhaps(present, more, words):
    assert identification_words({"is_known": True, "present": present, **more}, how_sure=True) == words
