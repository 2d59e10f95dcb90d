"""The types of the console are those of the gateway's answers."""

import re

from asya.gateway.call_table import CALLS
from asya_cli.console.calls import CALLS as ALLOWED
from docs_site.reference.console_types import FILE, text

WRITTEN = text()


def interface(name: str) -> str:
    found = re.search(rf"^export interface {name} {{\n(.*?)^}}", WRITTEN, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_file_is_written_from_the_calls() -> None:
    assert FILE.read_text(encoding="utf-8") == WRITTEN, "run: make console-types"


def test_each_answer_to_the_page_has_its_type() -> None:
    for call in CALLS:
        if (call.method, call.path) in ALLOWED:
            for each in call.answers.values():
                if each is not None and not isinstance(each, str):
                    assert interface(each.load().__name__)


def test_a_field_that_an_answer_leaves_out_is_optional_and_not_null() -> None:
    assert "  actor?: string;\n" in interface("TaskView")
    assert "  result?: Json;\n" in interface("TaskView")
    assert "  callback?: string;\n" in interface("TaskPause")


def test_a_field_that_is_always_there_may_be_null() -> None:
    assert "  oldest_seconds: number | null;\n" in interface("ActorNumbers")
    assert "  next_cursor: string | null;\n" in interface("RunDetails")
