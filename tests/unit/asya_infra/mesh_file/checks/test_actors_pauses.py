"""Pauses in the mesh file: the messages of prompts and values that cannot be shown."""

import pytest

from asya.protocol.pause import Pause
from asya_infra.mesh_file.table import to_table
from tests.unit.asya_infra.mesh_file.loading import load, problems_of

pytestmark = pytest.mark.usefixtures("folder")


def mesh_of(keys: str) -> str:
    return f"namespace: shop\nactors:\n  approve:\n    kind: pause\n    pause:\n      {keys}\n"


@pytest.mark.rule("11.pause.prompt", "11.pause.shows")
@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ('prompt: "Pay {/total}, or {{nothing}}?"', None),
        ("show: [/total, /report/lines/0, '']", None),
        ("show: []", None),
        (
            'prompt: "Pay {total}?"',
            "6: actors.approve.pause.prompt: '{total}' names no value of the payload: 'total' is not a JSON pointer: it starts "
            "with '/'; write '{{' and '}}' for the characters",
        ),
        (
            'prompt: "Pay {"',
            "6: actors.approve.pause.prompt: '{' stands alone; write '{{' for the character",
        ),
        ("show: [total]", "6: actors.approve.pause.show[0]: 'total' is not a JSON pointer: it starts with '/'"),
        ("show: [/a, /a]", "6: actors.approve.pause.show[1]: '/a' is there already; remove one of them"),
        (f"show: [/{'a' * 200}]", "6: actors.approve.pause.show[0]: has 201 characters; 200 at most"),
        (
            f"show: [{', '.join(f'/{number}' for number in range(21))}]",
            "6: actors.approve.pause.show: has 21 values; 20 at most",
        ),
    ],
)
def test_prompts_and_shown_values(keys: str, problem: str | None) -> None:
    assert problems_of(mesh_of(keys)) == ([problem] if problem is not None else [])


@pytest.mark.rule("11.pause.shows")
@pytest.mark.parametrize(("keys", "show"), [("callback: true", None), ("show: []", ()), ("show: /a", ("/a",))])
def test_the_table_has_what_is_shown(keys: str, show: tuple[str, ...] | None) -> None:
    pause = to_table(load(mesh_of(keys))).actors["approve"].pause or Pause()
    assert pause.show == show
