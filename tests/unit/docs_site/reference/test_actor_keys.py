"""Tests that the page of the mesh file has the keys of actors as they are declared."""

import pytest

from asya.option import Option
from asya.registry import PRODUCT
from asya_infra.mesh_file.actor_model import ActorSection
from asya_infra.mesh_file.sections import keys_of, without_links
from docs_site.reference.actor_keys import PAGE, with_keys

TEXT = PAGE.read_text(encoding="utf-8")
KEYS = TEXT.partition("## Keys of every actor")[2].partition("\n### ")[0]


def test_the_page_is_current() -> None:
    assert with_keys(TEXT) == TEXT, "run `make generated`"


def test_what_is_around_the_keys_stays() -> None:
    changed = TEXT.replace("| `deduplicate` |", "| `dedupe` |")
    assert with_keys(changed) == TEXT


def test_each_key_has_a_row_with_a_meaning() -> None:
    rows = [line.split(" | ") for line in KEYS.splitlines() if line.startswith("| `")]
    assert {row[0].strip("| `") for row in rows} == {*keys_of(ActorSection), *PRODUCT.options}
    assert all(row[1] and row[2].strip(" |") for row in rows)


@pytest.mark.parametrize("option", PRODUCT.options.values(), ids=lambda each: each.key)
def test_an_option_has_what_its_capability_declares(option: Option[object]) -> None:
    (row,) = (line for line in KEYS.splitlines() if line.startswith(f"| `{option.key}` |"))
    assert option.text.rstrip(".") in row


def test_links_are_those_of_the_page_alone() -> None:
    assert (
        without_links("[Actors](#can_send_to), or [all of\nthem](a.md#b); `[x](y z)`")
        == "Actors, or all of them; `[x](y z)`"
    )
