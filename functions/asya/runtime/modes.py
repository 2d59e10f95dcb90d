"""What a handler is given and what it gives: the payload alone, or the whole envelope (`protocol §6`, `handler_mode`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from msgspec import Raw

from asya.protocol import headers
from asya.protocol.frame import Frame
from asya.protocol.strict_json import encode_value
from asya.runtime.abi import EnvelopeView
from asya.runtime.changes import Snapshot, changes, encoded


class Mode(Protocol):
    """How a handler is spoken to. Both calls run as user code does: what they raise is the handler's error."""

    def argument(self, payload: Any, received: Callable[[], EnvelopeView]) -> Any:
        """What the handler is called with."""

    def frame(
        self, value: Any, received: Callable[[], EnvelopeView], seen: "tuple[Snapshot, EnvelopeView] | None"
    ) -> Frame:
        """The frame that a value it gave stands for.

        Args:
            received: makes the envelope as it came.
            seen: of a generator the envelope as it came, and as its commands have left it.
        """


@dataclass(frozen=True, slots=True)
class PayloadMode:
    """The payload, and nothing but payloads back.

    Attributes:
        adapt: turns the payload's JSON value into the handler's argument (typed signatures).
    """

    adapt: Callable[[Any], Any] = lambda payload: payload

    def argument(self, payload: Any, received: Callable[[], EnvelopeView]) -> Any:  # noqa: ARG002
        """The payload in the type that the handler asks for."""
        return self.adapt(payload)

    def frame(
        self,
        value: Any,
        received: Callable[[], EnvelopeView],  # noqa: ARG002
        seen: tuple[Snapshot, EnvelopeView] | None,
    ) -> Frame:
        """The value as payload, with what a generator's commands changed so far."""
        payload = encode_value(value)
        return Frame(payload) if seen is None else seen[0].frame(payload, seen[1])


@dataclass(frozen=True, slots=True)
class EnvelopeMode:
    """The whole envelope, and whole envelopes back, whose route the handler has advanced by itself.

    What is done and the actor's own name must be intact. Ids, status and managed headers are the mesh's: what the handler makes of
    them is not looked at.

    Attributes:
        shape: `envelope` shows the route as prev, curr, next; `envelope-v1` as actors and current.
    """

    shape: Literal["envelope", "envelope-v1"] = "envelope"

    def argument(self, payload: Any, received: Callable[[], EnvelopeView]) -> Any:
        """The envelope as a dict."""
        view = received()
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
        received: Callable[[], EnvelopeView],
        seen: tuple[Snapshot, EnvelopeView] | None,  # noqa: ARG002 - what it gives says everything
    ) -> Frame:
        """The frame of an envelope that the handler gave.

        Raises:
            ValueError: naming what is missing or may not be changed.
        """
        if not isinstance(value, dict):
            raise ValueError(f"a handler in envelope mode gives whole envelopes, not a {type(value).__name__}")
        for name in ("route", "payload"):
            if name not in value:
                raise ValueError(f"the envelope that the handler gave has no {name}")
        view = received()
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
        """What comes after this actor, once it is sure that what was before has not been touched."""
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


@dataclass(frozen=True, slots=True)
class EndMode:
    """A user's own end actor: it gets the envelope, and what it returns is not looked at (`protocol §5`)."""

    envelopes: EnvelopeMode = EnvelopeMode()

    def argument(self, payload: Any, received: Callable[[], EnvelopeView]) -> Any:
        """The envelope as a dict."""
        return self.envelopes.argument(payload, received)

    def frame(self, value: Any, received: Callable[[], EnvelopeView], seen: Any) -> Frame:  # noqa: ARG002
        """Always the same empty frame."""
        return Frame(Raw(b"null"))


def _names(route: dict[str, Any], key: str) -> Sequence[str]:
    found = route.get(key)
    if not isinstance(found, list | tuple) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"route.{key} must be a list of actor names")
    return found


def _header_changes(given: Any, view: EnvelopeView) -> dict[str, Raw | None]:
    if not isinstance(given, dict | None):
        raise ValueError(f"headers must be an object, not a {type(given).__name__}")
    before = {name: value for name, value in view.headers.items() if not headers.is_read_only(name)}
    after = {name: value for name, value in (given or {}).items() if not headers.is_read_only(name)}
    return changes(encoded(before, "headers"), encoded(after, "headers"))
