"""Tests the map of rules: each rule has a test, each marker names a rule, and the committed page is current."""

from functools import cache
from textwrap import dedent

import pytest

from tests import rules as rule_map
from tests.rules import Marker, Rule, as_page, as_text, markers_in, problems, read_rules, references_by_rule

PROTOCOL = dedent("""\
    # The protocol

    - **§1.shift** — an item before the first section

    ## 1. Envelope, in short

    ### Calls

    - **§1.id** — `id` is text, such as `a.B`. A second sentence
      on two lines: a | b.
    - **§1.shift** — The shift moves
      the route ([section 2](#2-status), [mesh file](mesh-file.md)). It moves once.

    ```text
    - **§1.example** — an example
    ```

    ## 2. Status

    ### Calls

    - **§2.calls.more** — No end of a sentence

      A paragraph of its own.
    """)
TESTS = dedent("""\
    import pytest

    @pytest.mark.rule("1.id", "2.calls.more")
    @pytest.mark.parametrize("a", [1])
    def test_one(a): ...

    class TestSeveral:
        @pytest.mark.rule("1.id")
        async def test_two(self): ...
    """)
RULES = read_rules(PROTOCOL)[1:]
MARKERS = markers_in(TESTS, "tests/test_a.py")


@cache
def the_rules() -> list[Rule]:
    return read_rules(rule_map.PROTOCOL.read_text(encoding="utf-8"))


@cache
def the_markers() -> list[Marker]:
    return rule_map.read_markers(rule_map.TESTS)


@pytest.mark.slow
def test_rules_and_markers_agree() -> None:
    assert len(the_rules()) > 300
    assert problems(the_rules(), the_markers()) == []


@pytest.mark.slow
def test_the_committed_page_is_current() -> None:
    committed = rule_map.PAGE.read_text(encoding="utf-8")
    assert committed == as_page(the_rules(), the_markers()), "docs/reference/rules.md is out of date; run `make rules`"


def test_rules_are_read_with_their_section_and_text() -> None:
    assert [(rule.key, rule.section, rule.anchor) for rule in RULES] == [
        ("1.id", "1. Envelope, in short", "calls"),
        ("1.shift", "1. Envelope, in short", "calls"),
        ("2.calls.more", "2. Status", "calls-1"),
    ]
    assert RULES[0].text == "`id` is text, such as `a.B`. A second sentence on two lines: a | b."
    assert [rule.first_sentence for rule in RULES] == [
        "`id` is text, such as `a.B`.",
        "The shift moves the route ([section 2](#2-status), [mesh file](mesh-file.md)).",
        "No end of a sentence",
    ]


def test_markers_are_read_from_test_functions_and_methods() -> None:
    assert references_by_rule(MARKERS) == {
        "1.id": ["tests/test_a.py::test_one", "tests/test_a.py::test_two"],
        "2.calls.more": ["tests/test_a.py::test_one"],
    }


def test_a_test_with_two_markers_for_one_rule_is_listed_once() -> None:
    (marker,) = markers_in("@pytest.mark.rule('1.id')\ndef test_a(): ...", "a.py")
    assert references_by_rule([marker, marker]) == {"1.id": ["a.py::test_a"]}


def test_markers_are_read_from_all_files_below_a_folder(tmp_path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "test_a.py").write_text(TESTS)
    (tmp_path / "notes.txt").write_text(TESTS)
    assert {marker.file for marker in rule_map.read_markers(tmp_path, tmp_path)} == {"deep/test_a.py"}


def test_a_rule_without_a_test_is_a_problem() -> None:
    assert problems(RULES, MARKERS) == [
        "docs/protocol.md:11: §1.shift has no test; mark one with @pytest.mark.rule('1.shift')"
    ]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("@pytest.mark.rule('1.shift', '1.nothing')\ndef test_a(): ...", "§1.nothing is no rule of docs/protocol.md"),
        ("@pytest.mark.rule\n@pytest.mark.rule('1.shift')\ndef test_a(): ...", "needs the keys of rules"),
        ("@pytest.mark.rule('1.shift')\n@pytest.mark.rule()\ndef test_a(): ...", "needs the keys of rules"),
        ("@pytest.mark.rule('1.shift', KEY)\ndef test_a(): ...", "needs the keys of rules"),
        ("@pytest.mark.rule('1.shift')\ndef test_a(): ...\npytestmark = pytest.mark.rule('1.id')", "not the decorator"),
        (
            "@pytest.mark.rule('1.shift')\ndef test_a(): ...\n@pytest.mark.rule('1.id')\ndef b(): ...",
            "not the decorator",
        ),
    ],
)
def test_a_wrong_marker_is_a_problem(source: str, problem: str) -> None:
    (text,) = problems(RULES, [*MARKERS, *markers_in(source, "tests/test_b.py")])
    assert text.startswith("tests/test_b.py:")
    assert problem in text


def test_duplicate_keys_and_wrong_sections_are_problems() -> None:
    page = PROTOCOL.replace("§2.calls.more", "§1.id")
    markers = [*MARKERS, *markers_in(TESTS.replace("1.id", "1.shift"), "tests/test_b.py")]
    assert [
        problem.partition(";")[0] for problem in problems(read_rules(page), markers) if problem.startswith("docs/")
    ] == [
        "docs/protocol.md:3: §1.shift stands in section ''",
        "docs/protocol.md:11: §1.shift stands in line 3 already",
        "docs/protocol.md:22: §1.id stands in line 9 already",
        "docs/protocol.md:22: §1.id stands in section '2. Status'",
    ]


def test_the_page_has_a_table_for_each_section() -> None:
    page = as_page(RULES, MARKERS)
    assert page.startswith("<!-- Generated by `make rules`; do not edit. -->\n")
    assert page.partition("\n## ")[2] == dedent("""\
        1. Envelope, in short

        | rule | first sentence | tests |
        |---|---|---|
        | [§1.id](../protocol.md#calls) | `id` is text, such as `a.B`. | `tests/test_a.py::test_one`<br>`tests/test_a.py::test_two` |
        | [§1.shift](../protocol.md#calls) | The shift moves the route ([section 2](../protocol.md#2-status), [mesh file](../mesh-file.md)). | none |

        ## 2. Status

        | rule | first sentence | tests |
        |---|---|---|
        | [§2.calls.more](../protocol.md#calls-1) | No end of a sentence | `tests/test_a.py::test_one` |
        """)  # noqa: E501


def test_the_text_names_rules_without_a_test() -> None:
    assert "\n    no test\n" in as_text(RULES, MARKERS)


@pytest.mark.parametrize(("markers", "exit_code"), [(MARKERS, 1), ([], 1), (None, 0)])
def test_missing_fails_if_a_rule_has_no_test(
    monkeypatch: pytest.MonkeyPatch, tmp_path, markers: list[Marker] | None, exit_code: int
) -> None:
    if markers is None:
        markers = markers_in("@pytest.mark.rule('1.id', '1.shift', '2.calls.more')\ndef test_a(): ...", "a.py")
    page = tmp_path / "protocol.md"
    page.write_text(PROTOCOL)
    monkeypatch.setattr(rule_map, "PROTOCOL", page)
    monkeypatch.setattr(rule_map, "read_markers", lambda folder: markers)
    assert rule_map.main(["--missing"]) == exit_code
