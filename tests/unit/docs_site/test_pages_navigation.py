"""Tests that the navigation has the sections and pages of the index."""

import tomllib

from docs_site.pages import Page, as_toml, read_index

INDEX = """\
# Documentation

## Tutorial

| page | you learn |
|---|---|
| [Your "first" mesh](tutorial/first-mesh.md) | Build, see [more](how-to/more.md) |
| [Decisions](decisions/README.md) | Why |

## Nothing

Text.
"""


def test_a_section_has_the_pages_of_its_table() -> None:
    assert read_index(INDEX) == {
        "Tutorial": [Page('Your "first" mesh', "tutorial/first-mesh.md"), Page("Decisions", "decisions/index.md")]
    }


def test_the_navigation_is_a_toml_value() -> None:
    assert tomllib.loads(f"nav = {as_toml(read_index(INDEX))}") == {
        "nav": [
            {"Start": "index.md"},
            {"Tutorial": [{'Your "first" mesh': "tutorial/first-mesh.md"}, {"Decisions": "decisions/index.md"}]},
        ]
    }
