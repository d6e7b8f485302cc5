"""The files of conf/: word for word what the parameter classes say, and readable back."""

import re

import pytest
import yaml
from pydantic import BaseModel, Field

from tasks.params import Params
from tasks.settings import ROOT, Settings, commented_defaults, leaves

WORDS = {name: field.annotation for name, field in Settings.model_fields.items()}


@pytest.mark.parametrize("word", WORDS)
def test_the_file_equals_the_commented_defaults_of_its_class(word):
    file = ROOT / "conf" / f"{word}.yaml"
    assert file.read_text(encoding="utf-8") == commented_defaults(WORDS[word]), f"run: whorl config --defaults {word}"


def test_there_is_a_file_for_each_word_and_no_other():
    assert {file.stem for file in (ROOT / "conf").glob("*.yaml")} == set(WORDS)


@pytest.mark.parametrize("word", WORDS)
def test_the_text_reads_back_as_the_defaults(word):
    assert WORDS[word](**yaml.safe_load(commented_defaults(WORDS[word]))) == WORDS[word]()


@pytest.mark.parametrize("word", WORDS)
def test_every_key_stands_below_a_comment_with_what_is_allowed(word):
    lines = commented_defaults(WORDS[word]).splitlines()
    keys = [at for at, line in enumerate(lines) if re.match(r"\s*\w+:", line)]
    assert len(keys) >= len(leaves(WORDS[word]().model_dump()))
    for at in keys:
        comment = lines[at - 1].strip()
        assert comment.startswith("# ")
        assert lines[at].endswith(":") or re.search(r"\[.+\]$", comment)


class Inner(Params):
    """How deep it goes."""

    names: tuple[str, ...] = Field(("no", "null", "1"), description="Texts that YAML would take for something else")
    ratio: float = Field(1e-300, gt=0, lt=1, description="A small number")


class Item(Params):
    """One of several."""

    name: str = Field(description="Its name")
    weight: float = Field(1, gt=0, description="How much it counts")


class Outer(Params):
    """An example.

    With more to say."""

    text: str = Field("a: #b", min_length=1, max_length=9, description="A text with marks")
    empty: str = Field("", description="Nothing")
    is_on: bool = Field(True, description="A switch")
    inner: Inner = Inner()
    items: tuple[Item, ...] = Field((Item(name="a"), Item(name="no", weight=2.5)), min_length=1, description="Several")


def test_the_text_of_an_example():
    assert commented_defaults(Outer) == (
        "# An example.\n"
        "# A text with marks [a text length at least 1 and length at most 9]\n"
        "text: 'a: #b'\n"
        "# Nothing [a text]\n"
        "empty: ''\n"
        "# A switch [true or false]\n"
        "is_on: true\n"
        "# How deep it goes.\n"
        "inner:\n"
        "  # Texts that YAML would take for something else [a list; each is a text]\n"
        "  names: ['no', 'null', '1']\n"
        "  # A small number [a number more than 0 and less than 1]\n"
        "  ratio: 1.0e-300\n"
        "# Several [a list; each with keys of name, weight, length at least 1]\n"
        "#   name: Its name [a text]\n"
        "#   weight: How much it counts [a number more than 0]\n"
        "items:\n"
        "  - {name: a, weight: 1.0}\n"
        "  - {name: 'no', weight: 2.5}\n"
    )
    assert Outer(**yaml.safe_load(commented_defaults(Outer))) == Outer()


def test_every_parameter_model_has_a_title():
    def models(model):
        yield model
        for field in model.model_fields.values():
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                yield from models(field.annotation)

    assert [model.__name__ for word in WORDS.values() for model in models(word) if not model.__doc__] == []
