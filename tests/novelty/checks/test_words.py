"""A cell with a misspelt word is odd and gets a correction; names and codes are accepted."""

from unittest import mock

import polars as pl
import pytest

from kpca_apps import screen_table
from kpca_apps.novelty.checks import words
from kpca_apps.novelty.checks.words import WordRule
from kpca_apps.novelty.result import MISSPELT

pytest.importorskip("wordfreq")

ENGLISH = [
    f"{action} of {thing}"
    for action in ("Removal", "Delivery", "Inspection", "Installation")
    for thing in ("the water pump", "a gas boiler", "electrical equipment", "the emergency exits")
]
GERMAN = [
    f"{action} {thing}"
    for action in ("Reparatur der", "Lieferung der", "Bestellung der", "Rechnung für die")
    for thing in ("Heizung", "Wasserleitung im Keller", "Fenster und Türen", "Küche")
]


def corrected(texts: list[str], wrong: str) -> dict[str, str]:
    return corrected_of([*texts * 3, wrong])


def corrected_of(texts: list[str]) -> dict[str, str]:
    table = {"n": range(len(texts)), "text": texts}
    cells = screen_table(pl.DataFrame(table), explain=0).findings.odd_cells
    return {cell.seen: cell.suggestion for cell in cells if cell.kind == MISSPELT}


@pytest.mark.parametrize(
    ("texts", "wrong", "right"),
    [
        (ENGLISH, "Inspection of electrical equipmnent", "Inspection of electrical equipment"),
        (ENGLISH, "Instalation of the water pump", "Installation of the water pump"),
        ([text.upper() for text in ENGLISH], "REMVOAL OF A BOILER", "REMOVAL OF A BOILER"),
        (GERMAN, "Bestelung der Küche", "Bestellung der Küche"),
        # A name in mixed case stays as it is.
        (ENGLISH, "Instalation of the EQUIpmnent", "Installation of the EQUIpmnent"),
    ],
)
def test_a_word_one_slip_from_a_frequent_one(texts: list[str], wrong: str, right: str) -> None:
    assert corrected(texts, wrong) == {wrong: right}


@pytest.mark.parametrize(
    "right",
    [
        "Removal of Pumpington's hat",  # names may contain apostrophes
        "Delivery of a truckle",  # short, and not similar to a frequent word
        "Inspection of the Keeling boiler",  # a name more frequent than misspelt words
        "See www.instalation.com/pmup",
        # Trying all edits of such a word would take hours.
        pytest.param("Removal of " + "x" * 100_000, id="longer than any word"),
        "Colour and modelling of the exits",
        "INSTALATION-7 of the water pump",  # a code
    ],
)
def test_names_addresses_and_codes_are_not_misspelt(right: str) -> None:
    assert corrected(ENGLISH, right) == {}


def test_a_word_of_many_texts_is_the_column_s_own() -> None:
    texts = [*ENGLISH, *(text.replace("equipment", "equipmnent") for text in ENGLISH)]
    assert corrected(texts, "Removal of a boiler") == {}


def test_a_word_of_many_texts_is_the_column_s_own_wherever_they_stand() -> None:
    first = [f"Removal of the water pump {number}" for number in range(words.N_SAMPLED)]
    last = [f"Delivery of the equipmnent to floor {number}" for number in range(50)]
    assert corrected_of([*first, *last]) == {}


def test_a_language_without_a_list_of_words_has_no_misspelt_ones() -> None:
    texts = [f"vesi{k % 7} pumppu huollettu kellarissa {'ensin' * (k % 3)}" for k in range(20)]
    assert corrected(texts, "pumppu huolletu kellarissa") == {}


def test_no_letters_of_a_sequence_are_exchanged() -> None:
    tried = mock.Mock(return_value=[])
    with mock.patch.object(words, "_edits_inside", tried):
        assert WordRule("en", frozenset())._meant("acgt" * 25_000) == ""
        assert WordRule("en", frozenset())._meant("instalation") == ""
    tried.assert_called_once_with("instalation")
