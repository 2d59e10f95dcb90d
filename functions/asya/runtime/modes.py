"""Handler modes: handlers get payloads or whole envelopes, and their changes are found (`protocol §6`, `§7`)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from asya.protocol import headers
from asya.protocol import headers as header_names
from asya.protocol.envelope import Frame
from asya.protocol.strict_json import NotJsonError, encode_value
from asya.runtime.abi import EnvelopeView
from asya.runtime.fan_out import RECEIVED, FanOut


class Snapshot(msgspec.Struct, frozen=True):
    """The headers and the status at the start of a call, as JSON text."""

    headers: dict[str, Raw]
    status: dict[str, Raw]

    @classmethod
    def of(cls, view: EnvelopeView) -> "Snapshot":
        """The snapshot of a view."""
        return cls(encode_members(view.headers, "headers"), encode_members(view.status, "status"))


class GeneratorState(NamedTuple):
    """The envelope of a generator: a snapshot of its start, and the view that its commands change."""

    start: Snapshot
    view: EnvelopeView

    def frame(self, payload: Raw | None) -> Frame:
        """A frame with this payload and the changes since the start.

        Raises:
            NotJsonError: a header or a status key has a value that is not JSON.
        """
        return Frame(
            payload=payload,
            next=tuple(self.view.next) if self.view.next_changed else None,
            headers=changes(self.start.headers, encode_members(self.view.headers, "headers")),
            status=changes(self.start.status, encode_members(self.view.status, "status")),
        )


def slice_frames(output: FanOut, state: GeneratorState) -> Iterator[Frame]:
    """The frames of a fan-out, with the changes since the start.

    Raises:
        NotJsonError: an item is not JSON; the error names it.
    """
    for part in output.slices(state.view):
        payload = None if part.item is RECEIVED else _encode_item(output.name_of(part.number), part.item)
        frame = state.frame(payload)
        header = encode_value(part.header)
        yield replace(frame, next=part.next, headers={**frame.headers, header_names.FAN_IN: header})


def encode_models(value: Any) -> Raw:
    """JSON text of a value that may hold models, dates, decimals and so on, each in the form of its own type.

    Raises:
        ContractError: a model is not valid.
        NotJsonError: the value has another type that JSON cannot hold.
    """
    try:
        return encode_value(value)
    except NotJsonError:
        from asya.contracts.codec import plain  # most results are plain already

        return encode_value(plain(value))


def _encode_item(name: str, item: Any) -> Raw:
    try:
        return encode_models(item)
    except NotJsonError as error:
        raise NotJsonError(f"{name}: {error}") from None


def encode_members(values: dict[str, Any], field: str) -> dict[str, Raw]:
    """JSON text of each value in a field of the envelope.

    Raises:
        NotJsonError: a key or a value is not JSON; the error names it.
    """
    members: dict[str, Raw] = {}
    for name, value in values.items():
        if not isinstance(name, str):
            raise NotJsonError(f".{field}: the key {name!r} is of type {type(name).__name__}; JSON keys are strings")
        try:
            members[name] = encode_value(value)
        except NotJsonError as error:
            raise NotJsonError(f".{field}[{name!r}]: {error}") from None
    return members


def changes(before: dict[str, Raw], after: dict[str, Raw]) -> dict[str, Raw | None]:
    """The members with new values, and None for each removed member."""
    changed: dict[str, Raw | None] = {
        name: raw for name, raw in after.items() if name not in before or bytes(before[name]) != bytes(raw)
    }
    return changed | {name: None for name in before if name not in after}


class Mode(Protocol):
    """Converts the argument and the results of a handler. An error of either method counts as the handler's error."""

    @property
    def has_decimals(self) -> bool:
        """Whether the argument needs the digits of numbers."""

    def argument(self, payload: Any, open_view: Callable[[], EnvelopeView]) -> Any:
        """The argument of the handler."""

    def frame(self, value: Any, open_view: Callable[[], EnvelopeView], state: GeneratorState | None) -> Frame:
        """The frame of a value that the handler returned or yielded.

        Args:
            open_view: makes a view of the received envelope.
            state: the changes of a generator; None for other handlers.
        """


class PayloadMode(msgspec.Struct, frozen=True):
    """The handler gets the payload and gives payloads.

    Attributes:
        adapt: converts the JSON value of the payload to the handler's argument, if the handler is typed.
        give: converts a result to its JSON value, if the type of the results is known.
        has_decimals: whether `adapt` needs the digits of numbers.
    """

    adapt: Callable[[Any], Any] | None = None
    give: Callable[[Any], Any] | None = None
    has_decimals: bool = False

    def argument(self, payload: Any, open_view: Callable[[], EnvelopeView]) -> Any:  # noqa: ARG002
        """The payload in the type of the handler's parameter."""
        return payload if self.adapt is None else self.adapt(payload)

    def frame(
        self,
        value: Any,
        open_view: Callable[[], EnvelopeView],  # noqa: ARG002
        state: GeneratorState | None,
    ) -> Frame:
        """The frame with the value as its payload, and the changes of a generator's commands."""
        payload = encode_value(value) if self.give is None else encode_models(self.give(value))
        return Frame(payload) if state is None else state.frame(payload)


class EnvelopeMode(msgspec.Struct, frozen=True):
    """The handler gets the envelope and gives envelopes, whose routes it has shifted itself.

    The handler must not change the actors that are done, or its own name. Its changes to ids, status and managed headers
    are ignored.

    Attributes:
        shape: `envelope` has a route with prev, curr and next; the legacy `envelope-v1` has actors and current.
    """

    shape: Literal["envelope", "envelope-v1"] = "envelope"
    has_decimals: ClassVar[bool] = False

    def argument(self, payload: Any, open_view: Callable[[], EnvelopeView]) -> Any:
        """The envelope as a dict."""
        view = open_view()
        envelope: dict[str, Any] = {"id": view.id, "route": self._route(view), "payload": payload}
        if view.parent_id:
            envelope["parent_id"] = view.parent_id
        if view.headers:
            envelope["headers"] = view.headers
        if view.status:
            envelope["status"] = view.status
        return envelope

    def frame(
        self,
        value: Any,
        open_view: Callable[[], EnvelopeView],
        state: GeneratorState | None,  # noqa: ARG002 - the envelope itself holds all changes
    ) -> Frame:
        """The frame of an envelope from the handler.

        Raises:
            ValueError: the envelope lacks a field, or the handler changed a fixed part of the route.
        """
        if not isinstance(value, dict):
            raise ValueError(f"a handler in envelope mode gives whole envelopes, not a {type(value).__name__}")
        for name in ("route", "payload"):
            if name not in value:
                raise ValueError(f"the envelope that the handler gave has no {name}")
        view = open_view()
        return Frame(
            payload=encode_value(value["payload"]),
            next=self._ahead(value["route"], view),
            headers=_header_changes(value.get("headers", view.headers), view),
        )

    def _route(self, view: EnvelopeView) -> dict[str, Any]:
        if self.shape == "envelope":
            return {"prev": list(view.prev), "curr": view.curr, "next": list(view.next)}
        actors = [*view.prev, *([view.curr] if view.curr else []), *view.next]
        return {"actors": actors, "current": len(view.prev)}

    def _ahead(self, route: Any, view: EnvelopeView) -> tuple[str, ...]:
        """The actors after this one, after a check that the part before is unchanged."""
        done = [*view.prev, view.curr]
        if not isinstance(route, dict):
            raise ValueError(f"route must be an object, not a {type(route).__name__}")
        if self.shape == "envelope":
            if list(_names(route, "prev")) != done:
                raise ValueError(f"route.prev must be {done}: what is done, and this actor, which is done now")
            curr = route.get("curr")
            if not isinstance(curr, str):
                raise ValueError("route.curr must be a text; it is empty at the end of the route")
            return (curr, *_names(route, "next")) if curr or route["next"] else ()
        actors, current = _names(route, "actors"), route.get("current")
        if list(actors[: len(done)]) != done:
            raise ValueError(f"route.actors must begin with {done}: what is done, and this actor")
        if current != len(done):
            raise ValueError(f"route.current must be {len(done)}, one more than it was; it is {current!r}")
        return tuple(actors[len(done) :])


class EndMode(msgspec.Struct, frozen=True):
    """A user's end actor: the handler gets the envelope, and its return value is ignored (`protocol §5`)."""

    envelopes: EnvelopeMode = EnvelopeMode()
    has_decimals: ClassVar[bool] = False

    def argument(self, payload: Any, open_view: Callable[[], EnvelopeView]) -> Any:
        """The envelope as a dict."""
        return self.envelopes.argument(payload, open_view)

    def frame(self, value: Any, open_view: Callable[[], EnvelopeView], state: Any) -> Frame:  # noqa: ARG002
        """Always the same empty frame."""
        return Frame(Raw(b"null"))


def _names(route: dict[str, Any], key: str) -> Sequence[str]:
    value = route.get(key)
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"route.{key} must be a list of actor names")
    return value


def _header_changes(values: Any, view: EnvelopeView) -> dict[str, Raw | None]:
    if not isinstance(values, dict | None):
        raise ValueError(f"headers must be an object, not a {type(values).__name__}")
    before = {name: value for name, value in view.headers.items() if not headers.is_read_only(name)}
    after = {name: value for name, value in (values or {}).items() if not headers.is_read_only(name)}
    return changes(encode_members(before, "headers"), encode_members(after, "headers"))
