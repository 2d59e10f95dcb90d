"""Tests that pages keep their meaning when GitHub's Markdown becomes that of the site generator."""

from collections import Counter
from textwrap import dedent

import pytest

from docs_site.pages import anchor, convert


def test_headings_get_the_anchors_of_github() -> None:
    page = "# The `asya` command\n\n## Calls\n\n```sh\n# no heading\n```\n\n## Calls\n"
    assert [line for line in convert(page).splitlines() if "{#" in line] == [
        "# The `asya` command {#the-asya-command}",
        "## Calls {#calls}",
        "## Calls {#calls-1}",
    ]


def test_a_repeated_anchor_is_numbered() -> None:
    counts: Counter[str] = Counter()
    assert [anchor("5.1 Parse, and validate", counts), anchor("5.1 Parse, and validate", counts)] == [
        "51-parse-and-validate",
        "51-parse-and-validate-1",
    ]


def test_what_belongs_to_an_item_is_indented_by_four_spaces() -> None:
    page = dedent("""\
        Before
        - one
          more

          A paragraph.
          - two

            ```sh
            asya list
            ```
        1. three
           more

        After
        """)
    assert convert(page) == dedent("""\
        Before

        - one
            more

            A paragraph.
            - two

                ```sh
                asya list
                ```
        1. three
            more

        After
        """)


def test_code_blocks_keep_their_lines() -> None:
    page = "```text\n  - a | b\n# c\n   d\n```\n"
    assert convert(page) == page


@pytest.mark.parametrize(
    ("fence", "converted"),
    [("```yaml mesh.yaml", '```yaml title="mesh.yaml"'), ("```sh aws", "```sh"), ("```json", "```json")],
)
def test_a_file_name_becomes_the_title_of_its_code_block(fence: str, converted: str) -> None:
    assert convert(f"{fence}\na\n```\n").splitlines()[0] == converted


def test_pipes_in_code_of_tables_are_not_escaped() -> None:
    assert convert("| `a \\| b` | c \\| d |\n") == "| `a | b` | c \\| d |\n"
