"""What breaks when one mesh takes the place of another: envelopes in flight, and callers."""

from dataclasses import replace
from typing import Any

import pytest

from asya_infra.contracts.breaking import breaking_changes
from asya_infra.contracts.mesh_contracts import ActorContract, MeshContracts, ToolContract

TEXT, NUMBER, FLOAT, DATE = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "number"},
    {"format": "date"} | {"type": "string"},
)
MAYBE = {"anyOf": [NUMBER, {"type": "null"}]}


def takes(*optional: str, others: bool = True, **fields: Any) -> dict[str, Any]:
    """The schema of payloads with these fields; those that are named beside have a default."""
    required = [name for name in fields if name not in optional]
    closed = {} if others else {"additionalProperties": False}
    return {"type": "object", "properties": fields, "required": required, **closed}


def gives(*optional: str, **fields: Any) -> dict[str, Any]:
    """The schema of results, which have no other fields."""
    return takes(*optional, others=False, **fields)


BEFORE = MeshContracts(
    {
        "check": ActorContract(takes(id=TEXT), gives(id=TEXT, total=NUMBER), ("bill",)),
        "bill": ActorContract(takes(id=TEXT, total=FLOAT), gives(id=TEXT, gross=FLOAT), ()),
    },
    {"order": ToolContract(takes(id=TEXT), ("check",), "bill")},
)


def changed(
    before: MeshContracts = BEFORE, tool: ToolContract | None = None, **actors: dict[str, Any]
) -> MeshContracts:
    """The contracts with other values of some actors, and of the tool."""
    return MeshContracts(
        {name: replace(each, **actors.get(name, {})) for name, each in before.actors.items()},
        {**before.tools, **({"order": tool} if tool else {})},
    )


def found(after: MeshContracts, before: MeshContracts = BEFORE) -> list[str]:
    return [f"{'.'.join(map(str, each.place))}: {each}" for each in breaking_changes(before, after)]


def test_nothing_breaks_without_a_change() -> None:
    assert found(BEFORE) == []
    assert found(MeshContracts(), MeshContracts()) == []
    assert found(BEFORE, MeshContracts()) == []


@pytest.mark.parametrize(
    ("taken", "text"),
    [
        (
            takes(id=TEXT, total=FLOAT, note=TEXT),
            "'bill' needs note: str; envelopes in flight may have none; "
            "give it a default, or deploy in two steps: first what gives it, then what needs it",
        ),
        (
            takes(id=TEXT, total=NUMBER),
            "'bill' needs total: int; envelopes in flight may have float; accept both until the queue is empty",
        ),
        (
            takes(id=TEXT, total=FLOAT, others=False),
            "'bill' takes no other fields; envelopes in flight may have some; accept it until the queue is empty",
        ),
        (TEXT, "'bill' needs str; envelopes in flight may have dict; accept both until the queue is empty"),
    ],
)
def test_an_actor_that_refuses_what_may_wait_in_its_queue(taken: dict[str, Any], text: str) -> None:
    assert found(changed(bill={"input": taken})) == [f"actors.bill: {text}"]


def test_a_nested_field_is_named_by_its_path() -> None:
    def lines(**fields: Any) -> dict[str, Any]:
        return {"input": takes(lines={"type": "array", "items": takes(**fields)})}

    before = changed(bill=lines(sku=TEXT))
    (text,) = found(changed(bill=lines(sku=NUMBER)), before)
    assert "'bill' needs lines[].sku: int; envelopes in flight may have str" in text


def test_what_an_earlier_actor_gave_is_in_flight_although_its_taker_had_no_type() -> None:
    before = changed(bill={"input": None})
    after = changed(before, bill={"input": takes(id=TEXT, total=DATE)})
    assert found(after, before) == [
        "actors.bill: 'bill' needs total: date; envelopes in flight from 'check' may have int; "
        "accept both until the queue is empty"
    ]


def test_what_an_actor_refused_before_is_no_change() -> None:
    before = changed(check={"output": gives(id=TEXT, total=TEXT)}, bill={"input": takes(id=TEXT, total=DATE)})
    after = changed(before, bill={"input": takes("note", id=TEXT, total=DATE, note=TEXT)})
    assert found(after, before) == []


def test_arguments_of_a_tool_are_in_flight_too() -> None:
    before = changed(check={"input": None})
    after = changed(before, check={"input": takes(id=TEXT, total=FLOAT)})
    (text,) = found(after, before)
    assert text.startswith(
        "actors.check: 'check' needs total: float; envelopes in flight from tool 'order' may have none"
    )


def test_a_field_is_named_once_however_many_send_it() -> None:
    more = {**BEFORE.actors, "recheck": replace(BEFORE.actors["check"])}
    before = MeshContracts(more, {"order": ToolContract(None, ("bill",)), "again": ToolContract(None, ("bill",))})
    after = changed(before, bill={"input": takes(id=TEXT, total=TEXT)})
    assert len(found(after, before)) == 1


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            gives(id=TEXT, total=TEXT),
            "'check' gives total: str; the earlier 'bill' needs float; deploy 'bill' first, so that it accepts both",
        ),
        (
            gives(id=TEXT),
            "'check' may give no total; the earlier 'bill' needs it; deploy 'bill' first, with a default for it",
        ),
        (
            gives("total", id=TEXT, total=NUMBER),
            "'check' may give no total; the earlier 'bill' needs it; deploy 'bill' first, with a default for it",
        ),
    ],
)
def test_an_actor_that_gives_what_the_earlier_function_of_the_next_one_refuses(
    given: dict[str, Any], text: str
) -> None:
    reader = takes("total", id=TEXT, total={"anyOf": [FLOAT, TEXT]})
    after = changed(check={"output": given}, bill={"input": reader})
    assert found(after) == [f"actors.check: {text}"]
    # In two steps nothing breaks.
    assert found(after, changed(bill={"input": reader})) == []


def test_a_closed_reader_is_told_of_a_new_field() -> None:
    before = changed(bill={"input": takes(id=TEXT, total=FLOAT, others=False)})
    after = changed(check={"output": gives(id=TEXT, total=NUMBER, note=TEXT)})
    assert found(after, before) == [
        "actors.check: 'check' gives field note; the earlier 'bill' refuses it; deploy 'bill' first, so that it accepts it"
    ]


def test_a_change_of_both_sides_is_told_once() -> None:
    after = changed(
        check={"output": gives(id=TEXT, total=TEXT)},
        bill={"input": takes(id=TEXT, total=TEXT)},
    )
    assert found(after) == [
        "actors.bill: 'bill' needs total: str; envelopes in flight may have float; accept both until the queue is empty"
    ]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (
            takes(id=TEXT, note=TEXT),
            "tools.order.input_schema: the tool 'order' needs note: str; callers may send none; give it a default",
        ),
        (
            takes(id=NUMBER),
            "tools.order.input_schema: the tool 'order' needs id: int; callers may send str; "
            "accept both until no caller sends the old form",
        ),
        (
            takes(id=TEXT, others=False),
            "tools.order.input_schema: the tool 'order' takes no other fields; callers may send some; "
            "accept it until no caller sends it",
        ),
    ],
)
def test_a_tool_that_refuses_what_its_callers_send(schema: dict[str, Any], text: str) -> None:
    assert found(changed(tool=ToolContract(schema, ("check",), "bill"))) == [text]


def test_a_tool_that_takes_more_breaks_nobody() -> None:
    tool = ToolContract(takes("note", id={"anyOf": [TEXT, NUMBER]}, note=TEXT), ("check",), "bill")
    assert found(changed(tool=tool)) == []


def test_a_removed_tool_fails_its_callers() -> None:
    assert found(MeshContracts(BEFORE.actors)) == [
        "tools: the tool 'order' is removed; its callers fail; keep it until nobody calls it"
    ]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (gives(id=TEXT), "may have no gross; callers may rely on it"),
        (gives("gross", id=TEXT, gross=FLOAT), "may have no gross; callers may rely on it"),
        (gives(id=TEXT, gross=TEXT), "may have gross: str; callers may rely on float"),
        (gives(id=TEXT, gross={"anyOf": [FLOAT, {"type": "null"}]}), "may have gross: None; callers may rely on float"),
        (FLOAT, "may be float; callers may rely on dict"),
    ],
)
def test_a_result_that_its_readers_do_not_expect(result: dict[str, Any], text: str) -> None:
    advice = "keep it until no caller reads it"
    assert found(changed(bill={"output": result})) == [f"tools.order: the result of tool 'order' {text}; {advice}"]


@pytest.mark.parametrize(
    "result", [gives(id=TEXT, gross=FLOAT, note=TEXT), gives(id=TEXT, gross=NUMBER), takes(id=TEXT, gross=FLOAT), None]
)
def test_a_result_with_more_breaks_nobody(result: dict[str, Any] | None) -> None:
    assert found(changed(bill={"output": result})) == []


def test_tools_with_the_same_result_are_told_together() -> None:
    before = MeshContracts(BEFORE.actors, {**BEFORE.tools, "again": ToolContract(None, ("bill",), "bill")})
    (text,) = found(changed(before, bill={"output": gives(id=TEXT)}), before)
    assert text.startswith("tools.order: the result of tools 'order', 'again' may have no gross")


def test_another_actor_at_the_end_of_a_tool_gives_another_result() -> None:
    after = changed(tool=ToolContract(takes(id=TEXT), ("check",), "check"))
    (text,) = found(after)
    assert "the result of tool 'order' may have no gross" in text


def test_what_is_not_known_on_one_side_is_no_finding() -> None:
    unknown = changed(
        tool=ToolContract(None, ("check",), None),
        check={"input": None, "output": None},
        bill={"input": None, "output": None},
    )
    assert found(unknown) == []
    assert found(BEFORE, unknown) == []
    assert found(MeshContracts({}, BEFORE.tools)) == []


def test_optional_values_stay_optional() -> None:
    before = changed(bill={"input": takes("total", id=TEXT, total=MAYBE)})
    assert found(changed(before, bill={"input": takes("total", id=TEXT, total=NUMBER)}), before) == [
        "actors.bill: 'bill' needs total: int; envelopes in flight may have None; accept both until the queue is empty"
    ]
