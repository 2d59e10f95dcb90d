"""protocol §7: the parts of an envelope that a handler may read and write."""

from typing import Any

import pytest

from asya.runtime.abi import EnvelopeView, execute
from tests.unit.asya.runtime.handler_calls import view


def run(command: tuple[Any, ...], **changes: Any) -> tuple[Any, EnvelopeView]:
    envelope = view(
        headers={
            "tenant": "acme",
            "a b": {"c": [1, 2]},
            "x-asya-root": "r",
            "x-asya-fan-in": {"set_id": "s"},
            "traceparent": "t",
        },
        status={"phase": "processing", "attempt": 2, "max_attempts": 3, "created_at": "c", "note": "n"},
        next=["post", "store"],
        **changes,
    )
    return execute(envelope, command), envelope


READ: list[tuple[str, Any]] = [
    (".id", "env-1"),
    (".parent_id", ""),
    (".route", {"prev": ["prep"], "curr": "infer", "next": ["post", "store"]}),
    (".route.prev", ["prep"]),
    (".route.curr", "infer"),
    (".route.next[0]", "post"),
    (".route.next[-1]", "store"),
    (".headers.tenant", "acme"),
    ('.headers["a b"].c[1]', 2),
    ('.headers["x-asya-root"]', "r"),
    (".headers.x-asya-root", "r"),
    (".status.phase", "processing"),
]


@pytest.mark.rule("7.GET", "7.paths", "7.readable")
@pytest.mark.parametrize(("path", "value"), READ)
def test_get(path: str, value: Any) -> None:
    assert run(("GET", path))[0] == value


@pytest.mark.rule("7.readable")
def test_get_of_missing_headers_is_empty() -> None:
    assert execute(view(headers={}), ("GET", ".headers")) == {}


@pytest.mark.rule("7.GET")
def test_get_gives_a_deep_copy() -> None:
    envelope = view(headers={"list": [1]})
    execute(envelope, ("GET", ".headers"))["list"].append(2)
    execute(envelope, ("GET", ".route.next")).append("x")
    assert envelope.headers == {"list": [1]}
    assert envelope.next == ["post"]


ROUTES: list[tuple[tuple[Any, ...], list[str]]] = [
    (("SET", ".route.next", []), []),
    (("SET", ".route.next", ["a"]), ["a"]),
    (("SET", ".route.next", ("a", "b")), ["a", "b"]),
    (("SET", ".route.next[:0]", ["a"]), ["a", "post", "store"]),
    (("SET", ".route.next[999:]", ["a"]), ["post", "store", "a"]),
    (("SET", ".route.next[0:1]", ["a", "b"]), ["a", "b", "store"]),
    (("SET", ".route.next[0]", "a"), ["a", "store"]),
    (("DEL", ".route.next"), []),
    (("DEL", ".route.next[0]"), ["store"]),
    (("DEL", ".route.next[-1]"), ["post"]),
]


@pytest.mark.rule("7.paths")
@pytest.mark.parametrize(("command", "after"), ROUTES)
def test_the_route_ahead_is_writable(command: tuple[Any, ...], after: list[str]) -> None:
    _, envelope = run(command)
    assert envelope.next == after
    assert envelope.next_changed


@pytest.mark.rule("7.SET")
def test_values_are_copied_on_set() -> None:
    envelope, value = view(), {"a": [1]}
    execute(envelope, ("SET", ".headers.mine", value))
    value["a"].append(2)
    assert envelope.headers["mine"] == {"a": [1]}


@pytest.mark.rule("3.handlers-may-not")
def test_a_set_of_all_headers_or_of_the_status_replaces_the_rest_only() -> None:
    _, envelope = run(("SET", ".headers", {"new": 1, "x-asya-root": "forged", "traceparent": "forged"}))
    assert envelope.headers == {"new": 1, "x-asya-root": "r", "traceparent": "t"}
    _, envelope = run(("SET", ".status", {"phase": "x", "attempt": 99}))
    assert envelope.status == {"phase": "x", "attempt": 2, "max_attempts": 3, "created_at": "c"}
    _, envelope = run(("DEL", ".headers"))
    assert envelope.headers == {"x-asya-root": "r", "traceparent": "t"}


@pytest.mark.rule("3.handlers-may-not")
def test_the_fan_in_header_alone_of_the_managed_ones_may_be_set() -> None:
    _, envelope = run(("SET", '.headers["x-asya-fan-in"].set_id', "other"))
    assert envelope.headers["x-asya-fan-in"] == {"set_id": "other"}
    _, envelope = run(("DEL", ".headers.x-asya-fan-in"))
    assert "x-asya-fan-in" not in envelope.headers


@pytest.mark.rule("7.SET.parents")
@pytest.mark.parametrize(
    ("path", "header"),
    [
        (".headers.a.b.c", {"a": {"b": {"c": 1}}}),
        ('.headers["any name"].b', {"any name": {"b": 1}}),
        (".headers.nothing.b", {"nothing": {"b": 1}}),
        (".headers.entries[0].b.c", {"entries": [{"kept": True, "b": {"c": 1}}]}),
    ],
)
def test_set_creates_missing_parents_as_objects(path: str, header: dict[str, Any]) -> None:
    _, envelope = run(("SET", ".headers", {"nothing": None, "entries": [{"kept": True}]}))
    execute(envelope, ("SET", path, 1))
    (name, value), *_ = header.items()
    assert envelope.headers[name] == value


REFUSED: list[tuple[tuple[Any, ...], type[Exception]]] = [
    (("SET", ".id", "x"), PermissionError),
    (("SET", ".parent_id", "x"), PermissionError),
    (("SET", ".route", {}), PermissionError),
    (("SET", ".route.prev", []), PermissionError),
    (("SET", ".route.curr", "x"), PermissionError),
    (("DEL", ".route.prev[0]"), PermissionError),
    (("GET", ".payload"), PermissionError),
    (("SET", ".payload.x", 1), PermissionError),
    (("DEL", ".id"), PermissionError),
    (("GET", '["id"]'), ValueError),
    (("SET", ".headers.x-asya-root", "x"), PermissionError),
    (("SET", '.headers["x-asya-anything"]', "x"), PermissionError),
    (("SET", ".headers.traceparent", "x"), PermissionError),
    (("DEL", ".headers.tracestate"), PermissionError),
    (("SET", ".status.deadline_at", "x"), PermissionError),
    (("SET", ".status.created_at", "x"), PermissionError),
    (("SET", ".status.attempt", 1), PermissionError),
    (("DEL", ".status.max_attempts"), PermissionError),
    (("NOPE", ".id"), RuntimeError),
    (("get", ".id"), RuntimeError),
    ((), RuntimeError),
    (({"a": 1}, 2), RuntimeError),
    (("GET",), ValueError),
    (("GET", ".id", 1), ValueError),
    (("SET", ".headers.a"), ValueError),
    (("DEL", ".headers.tenant", 1), ValueError),
    (("FLY",), ValueError),
    (("FLY", "text"), ValueError),
    (("GET", "id"), ValueError),
    (("GET", ""), ValueError),
    (("GET", "."), ValueError),
    (("GET", 5), ValueError),
    (("GET", ".headers["), ValueError),
    (("GET", ".headers[x]"), ValueError),
    (("GET", '.headers["x]'), ValueError),
    (("GET", '.headers["\\x"]'), ValueError),
    (("GET", ".route.next[" + "9" * 5000 + "]"), ValueError),
    (("GET", ".route..next"), ValueError),
    (("GET", ".route.next[0:1]"), ValueError),
    (("DEL", ".route.next[0:1]"), ValueError),
    (("SET", ".headers.list[0:1].x", 1), KeyError),
    (("GET", ".headers.missing"), KeyError),
    (("GET", ".headers.tenant.deeper"), KeyError),
    (("DEL", ".headers.missing"), KeyError),
    (("SET", ".headers.missing.list[0]", 1), KeyError),
    (("SET", ".headers.missing[0].below", 1), KeyError),
    (("SET", ".headers.tenant.below", 1), KeyError),
    (("SET", ".headers.x-asya-root.below", 1), PermissionError),
    (("SET", ".status.deadline_at.below", 1), PermissionError),
    (("SET", ".headers[0]", 1), KeyError),
    (("SET", ".route.next.x", ["a"]), KeyError),
    (("GET", ".route.next[9]"), IndexError),
    (("GET", ".route.prev[-2]"), IndexError),
    (("SET", ".route.next[9]", "a"), IndexError),
    (("DEL", ".route.next[9]"), IndexError),
    (("SET", ".route.next", "abc"), ValueError),
    (("SET", ".route.next", [1]), ValueError),
    (("SET", ".route.next", None), ValueError),
    (("SET", ".route.next[0]", None), ValueError),
    (("SET", ".route.next[0].x", "a"), ValueError),
    (("DEL", ".route.next[0].x"), ValueError),
    (("SET", ".route.next[:0]", "ab"), ValueError),
    (("SET", ".headers", [1]), ValueError),
    (("SET", ".status", None), ValueError),
]


@pytest.mark.rule("1.route.prev", "3.handlers-may-not", "7.errors", "7.writable")
@pytest.mark.parametrize(("command", "error"), REFUSED, ids=lambda value: repr(value)[:60])
def test_a_refused_command_raises_its_error_and_changes_nothing(
    command: tuple[Any, ...], error: type[Exception]
) -> None:
    before = run(("GET", ".id"))[1]
    envelope = run(("GET", ".id"))[1]
    with pytest.raises(error) as caught:
        execute(envelope, command)
    assert type(caught.value) is error
    assert str(caught.value)
    assert envelope == before


@pytest.mark.rule("7.FLY")
def test_fly_goes_out_in_order_and_is_never_a_frame() -> None:
    partials: list[Any] = []
    message = {"text": ["a"]}
    envelope = view(publish_partial=partials.append)
    assert execute(envelope, ("FLY", message)) is None
    message["text"].append("b")
    execute(envelope, ("FLY", message))
    assert partials == [{"text": ["a"]}, {"text": ["a", "b"]}]
    assert execute(view(), ("FLY", {})) is None  # without a receiver
