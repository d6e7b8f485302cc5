"""The list of small faults keeps up with the code that they are put into."""

from pathlib import Path

from tests.studies.mutants import MUTANTS


def test_what_a_mutant_changes_stands_once_in_its_file():
    texts = {mutant.file: Path(__file__).parents[2].joinpath(mutant.file).read_text() for mutant in MUTANTS}
    assert [mutant.fault for mutant in MUTANTS if texts[mutant.file].count(mutant.old) != 1] == []
