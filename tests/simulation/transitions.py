"""What may become of a message at one hop (`protocol §1`, `§2`, `§3`, `§5`, `§8`), told from outside.

There is a message that was received, one that was sent because of it, and the mesh between.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from asya.protocol.mesh_table import Actor, MeshTable
from tests.simulation.programs import Given, frame_index
from tests.simulation.seen import REFERENCE, Seen
from tests.simulation.sets import slice_of

ENDS = ("x-sink", "x-sump")
# What may not be seen beyond the hop that it belongs to.
_OF_A_HOP = ("x-asya-first-attempt", "x-asya-not-before", "x-asya-pause")
_CHANGED_BY_HANDLERS = ("color",)


@dataclass(frozen=True)
class Transition:
    """One message and another that it caused.

    Attributes:
        at: the actor that worked on it.
        to: the actor whose queue the other was sent to.
        given: what the handler gave, if the other's payload is a frame.
        is_kept: the frame was kept by an earlier run of this hop, which had another payload: an earlier hop had failed once and
            been done once, and both its outcomes went on.
    """

    mesh: MeshTable
    was: Seen
    now: Seen
    at: str
    to: str
    given: Given | None = None
    is_kept: bool = False

    @property
    def spec(self) -> Actor:
        """The actor that worked on it."""
        return self.mesh.actors[self.at]

    def problems(self) -> Iterator[str]:
        """Everything that is wrong with it."""
        if self.now.status.get("reason") == "ParseError" and self.now.phase == "failed" and self.to == "x-sump":
            yield from self._complained_of()
            return
        if (self.now.status.get("error") or {}).get("type") == "EnvelopeTooLarge" and self.to == "x-sump":
            return
        if self.at in ENDS:
            yield from self._passed_on()
            return
        if self.is_later:
            return
        yield from self._carried()
        match self.now.phase:
            case "retrying":
                yield from self._retried()
            case "pending":
                yield from self._routed()
            case "succeeded":
                yield from self._succeeded()
            case "failed" | "canceled" | "paused":
                yield from self._ended()
            case phase:
                yield f"an envelope in phase {phase!r} may not be on a queue"

    @property
    def is_later(self) -> bool:
        """Whether it was only sent again, to wait."""
        return self.to == self.at and self.now == self.was

    def _carried(self) -> Iterator[str]:
        """What every path carries unchanged."""
        was, now = self.was, self.now
        if REFERENCE in now.headers and now.payload is not None:
            yield "a claim check's reference is seen past the transport"
        if "x-asya-payload-ref" in now.headers and not now.has_reference:
            yield "a claim check's reference leads nowhere"
        if was.status.get("deadline_at") != now.status.get("deadline_at"):
            yield f"deadline_at was {was.status.get('deadline_at')} and is {now.status.get('deadline_at')}"
        if was.status.get("created_at") not in (None, now.status.get("created_at")):
            yield f"created_at was {was.status.get('created_at')} and is {now.status.get('created_at')}"
        for name, value in was.headers.items():
            if name.startswith("x-asya-") or name in ("traceparent", *_CHANGED_BY_HANDLERS):
                continue
            if now.headers.get(name) != value:
                yield f"header {name} was {str(value)[:40]!r} and is {str(now.headers.get(name))[:40]!r}"
        for name in ("x-asya-gateway-url", "x-asya-mesh-status", "x-asya-generation", "x-asya-hook"):
            if was.headers.get(name) != now.headers.get(name):
                yield f"header {name} was {was.headers.get(name)!r} and is {now.headers.get(name)!r}"
        if str(was.headers.get("traceparent", ""))[:35] != str(now.headers.get("traceparent", ""))[:35] and (
            "traceparent" in was.headers
        ):
            yield "it left its trace"

    def _is_same_envelope(self) -> Iterator[str]:
        was, now = self.was, self.now
        if (was.id, was.parent_id) != (now.id, now.parent_id):
            yield f"id and parent were {was.id}, {was.parent_id} and are {now.id}, {now.parent_id}"

    def _stood_still(self) -> Iterator[str]:
        was, now = self.was, self.now
        if (was.prev, was.curr, was.next) != (now.prev, now.curr, now.next):
            yield f"the route moved: {_route(was)} to {_route(now)}"
        if was.payload != now.payload:
            yield "the payload is not the one received"

    def _retried(self) -> Iterator[str]:
        yield from self._is_same_envelope()
        yield from self._stood_still()
        if self.to != self.at:
            yield f"a retry of {self.at} was sent to {self.to}"
        attempt = self.now.status.get("attempt", 0)
        if attempt != self.was.attempt + 1:
            yield f"attempt {self.was.attempt} was followed by attempt {attempt}"
        most = max((policy.max_attempts for policy in self.spec.resiliency.policies.values()), default=1)
        if attempt > most:
            yield f"attempt {attempt} of {self.at}, whose policies allow {most}"
        first = self.now.headers.get("x-asya-first-attempt")
        if first is None or (self.was.attempt > 1 and first != self.was.headers.get("x-asya-first-attempt")):
            yield "a retry without the time of the first attempt"
        if not self.now.status.get("error"):
            yield "a retry without its error"

    def _moved_on(self) -> Iterator[str]:
        was, now = self.was, self.now
        if now.prev != (*was.prev, was.curr):
            yield f"after {_route(was)} came {_route(now)}: not one shift"
        for name in _OF_A_HOP:
            if name in now.headers:
                yield f"header {name} is seen beyond its hop"

    def _routed(self) -> Iterator[str]:
        yield from self._moved_on()
        if self.to != self.now.curr:
            yield f"an envelope for {self.now.curr} was sent to {self.to}"
        if self.now.status.get("attempt") != 1:
            yield f"a new hop begins with attempt {self.now.status.get('attempt')}"
        if self.now.status.get("reason") == "PolicyRouted":
            yield from self._is_same_envelope()
            if self.was.payload != self.now.payload:
                yield "the payload is not the one received"
            return
        if self.now.status.get("error"):
            yield "an error is carried on after a success"
        yield from self._is_frame()

    def _is_frame(self) -> Iterator[str]:
        """A frame of the handler: index 0 is the envelope itself, the others are children."""
        was, now, trail = self.was, self.now, self.now.trail
        if trail is None or was.trail is None or self.is_kept:
            return
        if self.at == "x-checkpoint" or self._is_origin_of_set():
            yield from self._is_same_envelope()
            if was.payload != now.payload:
                yield "the payload is not the one received"
            return
        if trail[:-1] != was.trail or self.given is None:
            yield f"nobody gave the payload {trail} for {was.trail}"
            return
        ahead = was.next if self.given.next is None else self.given.next
        if (now.curr, *now.next) != (ahead or ("",)):
            yield f"after {_route(was)} the handler left {ahead} ahead, and it became {_route(now)}"
        if self.given.color is not None and now.headers.get("color") != self.given.color:
            yield f"the handler set color to {self.given.color}, and it is {now.headers.get('color')}"
        if self.given.color is None and now.headers.get("color") != was.headers.get("color"):
            yield "the color changed, and nobody changed it"
        if frame_index(trail) == 0:
            yield from self._is_same_envelope()
        else:
            yield from self._is_child()

    def _is_origin_of_set(self) -> bool:
        """Slice 0 of a set that was opened here."""
        header, before = slice_of(self.now), slice_of(self.was)
        return (
            header is not None and header != before and header["slice_index"] == 0 and self.now.curr == header["actor"]
        )

    def _is_child(self) -> Iterator[str]:
        was, now = self.was, self.now
        if now.id == was.id or now.parent_id != was.id:
            yield f"a child of {was.id} has id {now.id} and parent {now.parent_id}"
        root = was.headers.get("x-asya-root") or was.id
        if now.headers.get("x-asya-root") != root:
            yield f"a child in the tree of {root} says it is in that of {now.headers.get('x-asya-root')}"

    def _succeeded(self) -> Iterator[str]:
        if self.to != "x-sink":
            yield f"a success was sent to {self.to}"
        if self.now.status.get("error") or self.now.status.get("reason") != "Completed":
            yield "a success with an error, or without reason Completed"
        if self.now.prev == self.was.prev:
            yield from self._is_same_envelope()
            yield from self._stood_still()
            return
        yield from self._moved_on()
        if self.now.curr:
            yield f"a success that is to go on to {self.now.curr}"
        yield from self._is_frame()

    def _ended(self) -> Iterator[str]:
        """It ends here, as it came; after frame 0 has left, as a child."""
        if self.to not in ENDS:
            yield f"an end ({self.now.phase}) was sent to {self.to}"
        if self.now.id == self.was.id:
            yield from self._is_same_envelope()
        else:
            yield from self._is_child()
        yield from self._stood_still()
        if self.now.phase == "failed" and not self.now.status.get("error"):
            yield "a failure without an error"
        attempt = self.now.status.get("attempt")
        if attempt != self.was.attempt:
            yield f"attempt {self.was.attempt} ended as attempt {attempt}"

    def _complained_of(self) -> Iterator[str]:
        """What could not be read goes to x-sump whole, with a message that says why."""
        message = (self.now.status.get("error") or {}).get("message", "")
        if not message.startswith("Failed to parse message: "):
            yield f"a parse error says {message!r}"

    def _passed_on(self) -> Iterator[str]:
        """From x-sink: failures to x-sump as they are, and copies to hooks."""
        was, now = self.was, self.now
        if self.to == "x-sump":
            yield from self._carried()
            yield from self._is_same_envelope()
            yield from self._stood_still()
            if now.phase != "failed":
                yield f"an envelope in phase {now.phase} was passed on to x-sump"
        elif "x-asya-hook" in now.headers:
            if now.parent_id != was.id or not now.is_stealth or (now.prev, now.next) != ((), ()):
                yield "a hook's copy is no copy, or not stealth"
        else:
            yield f"{self.at} sent something to {self.to}"


def _route(seen: Seen) -> str:
    return f"{'>'.join(seen.prev)}[{seen.curr}]{'>'.join(seen.next)}"
