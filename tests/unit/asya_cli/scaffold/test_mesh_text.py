"""An entry is added to the text of a mesh file, and everything else stays as it is."""

import pytest
import yaml

from asya_cli.scaffold.mesh_text import Entry, NotEditableError, line_of, with_entry

BILL = Entry("actors", "bill", ("handler: bills.bill",))
ORDER = Entry("tools", "order", ("description: An order", "route: [check]"))

PLAIN = """\
namespace: shop # the name
actors:
  check: {handler: orders.check}
  send: {handler: orders.send}
sink: {index: false}
"""
PLAIN_AFTER = """\
namespace: shop # the name
actors:
  check: {handler: orders.check}
  send: {handler: orders.send}
  bill:
    handler: bills.bill
sink: {index: false}
"""
COMMENTED = """\
# The mesh.
actors:

    # Checks.
    check:
        handler: orders.check   # a function

    # Sends.
    send:
        env:
            TEXT: |
                two
                lines
    # old: {handler: orders.old}

# The tools.
tools: {}
namespace: shop
"""
COMMENTED_AFTER = COMMENTED.replace(
    "    # old: {handler: orders.old}\n", "    # old: {handler: orders.old}\n\n    bill:\n      handler: bills.bill\n"
)


@pytest.mark.parametrize(("before", "after"), [(PLAIN, PLAIN_AFTER), (COMMENTED, COMMENTED_AFTER)])
def test_an_actor_is_added_at_the_end_of_the_actors(before: str, after: str) -> None:
    assert with_entry(before, BILL) == after


def test_a_missing_section_is_added_at_the_end() -> None:
    assert with_entry(PLAIN.rstrip("\n"), ORDER) == (
        PLAIN + "\ntools:\n  order:\n    description: An order\n    route: [check]\n"
    )


def test_a_single_entry_of_several_lines_is_followed_by_a_blank_line() -> None:
    text = "actors:\n  check:\n    handler: orders.check\n"
    assert with_entry(text, BILL) == text + "\n  bill:\n    handler: bills.bill\n"


def test_line_endings_stay() -> None:
    edited = with_entry(PLAIN.replace("\n", "\r\n"), BILL)
    assert edited == PLAIN_AFTER.replace("\n", "\r\n")


def test_the_last_line_needs_no_end() -> None:
    text = "namespace: shop\nactors:\n  check: {handler: orders.check}"
    assert with_entry(text, BILL) == text + "\n  bill:\n    handler: bills.bill\n"


@pytest.mark.parametrize(
    "text",
    [
        "namespace: shop\nactors: {check: {handler: orders.check}}\n",
        "namespace: shop\nactors:\n",
        "{namespace: shop, actors: {check: {handler: orders.check}}}\n",
        "namespace: shop\nactors: &all\n  check: {handler: a.b}\n...\n# the end\n",
        "- a list\n",
        "actors:\n  bill: {handler: other.bill}\n",
    ],
)
def test_what_cannot_be_edited_is_refused_or_has_the_right_meaning(text: str) -> None:
    try:
        edited = with_entry(text, BILL)
    except NotEditableError:
        return
    before = yaml.safe_load(text)
    assert yaml.safe_load(edited) == {**before, "actors": {**before["actors"], "bill": {"handler": "bills.bill"}}}


def test_a_section_in_braces_is_refused() -> None:
    with pytest.raises(NotEditableError):
        with_entry("namespace: shop\nactors: {check: {handler: orders.check}}\n", BILL)


def test_the_line_of_an_entry_is_found() -> None:
    assert line_of(COMMENTED, "actors", "send") == 9
    assert line_of(COMMENTED, "actors", "bill") is None
    assert line_of(COMMENTED, "stages", "dev") is None


@pytest.mark.parametrize("scalar", ["2026-13-45", "3.10", "1_", "=", "0x"])
def test_a_scalar_has_no_meaning(scalar: str) -> None:
    text = f"tags: {{version: {scalar}}}\nactors:\n  check: {{handler: orders.check}}\n"
    assert with_entry(text, BILL) == text + "  bill:\n    handler: bills.bill\n"
