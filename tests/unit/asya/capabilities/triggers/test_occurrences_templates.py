"""Payloads of triggers: placeholders, braces, and what is wrong with a template."""

import pytest

from asya.capabilities.triggers.occurrences import fill_in

VALUES = {"date": "2026-11-25", "time": "02:00"}


@pytest.mark.rule("16.payload")
@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ({"flights": "raw/{date}/flights.csv.gz"}, {"flights": "raw/2026-11-25/flights.csv.gz"}),
        (
            {"a": ["{time}", {"b": "{date}{time}"}], "n": 1, "x": None},
            {"a": ["02:00", {"b": "2026-11-2502:00"}], "n": 1, "x": None},
        ),
        ({"{date}": "{{date}}"}, {"{date}": "{date}"}),
        ("plain", "plain"),
    ],
)
def test_16_texts_are_filled_in_at_any_depth(template: object, filled: object) -> None:
    """Keys and values of other types stay, and doubled braces are braces."""
    assert fill_in(template, VALUES) == filled


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("raw/{dat}", r"there is no value \{dat\}; the values are \{date\}, \{time\}"),
        ("{}", r"there is no value \{\}"),
        ("{date", "'{' stands alone; write '{{'"),
        ("date}", "'}' stands alone; write '}}'"),
    ],
)
def test_a_wrong_template_is_explained(template: str, problem: str) -> None:
    """The message says what to write."""
    with pytest.raises(ValueError, match=problem):
        fill_in({"key": [template]}, VALUES)


def test_a_value_is_not_a_template() -> None:
    """Text of others stays as it is."""
    assert fill_in("{date}", {"date": "{time}"}) == "{time}"
