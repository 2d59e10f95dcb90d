"""Checks the transition of an envelope at one hop (`protocol §1`, `§2`, `§3`, `§5`, `§8`).

The checks compare a received message with a message that it caused.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from asya import registry
from asya.manifest import ActorFunction
from asya.protocol import ids
from asya.protocol.mesh_table import Actor, MeshTable
from tests.simulation.checks.observed_envelope import REFERENCE, ObservedEnvelope, target_of
from tests.simulation.checks.sets import slice_of
from tests.simulation.inputs.programs import OutputFrame, frame_index

ENDS = ("x-sink", "x-sump")
# Headers that no later hop may receive.
_HOP_HEADERS = ("x-asya-first-attempt", "x-asya-not-before", "x-asya-pause", "x-asya-wait")
_HANDLER_HEADERS = ("color",)
# Managed headers that every path carries unchanged.
_CARRIED = (
    "x-asya-gateway-url",
    "x-asya-mesh-status",
    "x-asya-generation",
    "x-asya-hook",
    "x-asya-route-override",
)


@dataclass(frozen=True)
class Transition:
    """A received envelope and an envelope that it caused.

    Attributes:
        at: the actor that processed the received envelope.
        to: the actor that gets the sent envelope.
        frame: the handler's output, if the sent payload is a frame.
        is_saved: an earlier run of this hop saved the frame for another payload. This happens if an earlier hop failed and
            succeeded, and both outcomes continued.
        is_stored_end: whether the sent envelope is what the object of this end holds.
    """

    mesh: MeshTable
    before: ObservedEnvelope
    after: ObservedEnvelope
    at: str
    to: str
    frame: OutputFrame | None = None
    is_saved: bool = False
    is_stored_end: bool = False

    @property
    def spec(self) -> Actor:
        """The actor that processed the received envelope."""
        return self.mesh.actors[self.at]

    @property
    def _passes_payloads(self) -> bool:
        function = registry.function_of(self.at, self.mesh)
        return isinstance(function, ActorFunction) and function.passes_payloads

    def problems(self) -> Iterator[str]:
        """Yield the violations of this transition."""
        if self.after.status.get("reason") == "ParseError" and self.after.phase == "failed" and self.to == "x-sump":
            yield from self._check_parse_error()
            return
        if (self.after.status.get("error") or {}).get("type") == "EnvelopeTooLarge" and self.to == "x-sump":
            yield from self._check_too_large()
            return
        if self.at in ENDS:
            yield from self._check_end_actor()
            return
        if self.is_postponed:
            return
        yield from self._check_carry()
        if self.spec.kind == "end":
            yield from self._check_user_end()
            return
        if self.spec.kind == "pause" and self.after.phase not in ("failed", "canceled", "paused"):
            yield f"a pause actor keeps the envelope, but it sent it as {self.after.phase}"
        match self.after.phase:
            case "retrying":
                yield from self._check_retry()
            case "pending":
                yield from self._check_routing()
            case "succeeded":
                yield from self._check_success()
            case "failed" | "canceled" | "paused":
                yield from self._check_end()
            case phase:
                yield f"an envelope in phase {phase!r} may not be on a queue"

    @property
    def is_postponed(self) -> bool:
        """Whether the actor only sent the envelope again, to postpone it."""
        if self.to != self.at:
            return False
        after = self.after
        if not self.before.status and after.phase == "pending":
            # A new task gets its first status and its owner, because this actor is the next sender.
            own_headers = {name: value for name, value in after.headers.items() if name != "x-asya-owner"}
            after = replace(after, status=self.before.status, headers=own_headers)
        return after == self.before or "x-asya-circuit-open-since" in after.headers

    def _check_carry(self) -> Iterator[str]:
        """Fields and headers that each path carries unchanged."""
        before, after = self.before, self.after
        if REFERENCE in after.headers and after.payload is not None:
            yield "the envelope carries a claim check's reference beside its payload"
        # A caller may name an object that is missing.
        is_new = after.headers.get(REFERENCE) != before.headers.get(REFERENCE)
        if REFERENCE in after.headers and not after.has_reference and is_new:
            yield "the object of a claim check is missing"
        # x-resume sets a new deadline; the registry of pauses checks it.
        if self.at != "x-resume" and before.status.get("deadline_at") != after.status.get("deadline_at"):
            yield f"deadline_at was {before.status.get('deadline_at')} and is {after.status.get('deadline_at')}"
        if before.status.get("created_at") not in (None, after.status.get("created_at")):
            yield f"created_at was {before.status.get('created_at')} and is {after.status.get('created_at')}"
        for name, value in before.headers.items():
            if name.startswith("x-asya-") or name in ("traceparent", *_HANDLER_HEADERS):
                continue
            if after.headers.get(name) != value:
                yield f"header {name} was {str(value)[:40]!r} and is {str(after.headers.get(name))[:40]!r}"
        for name in _CARRIED:
            if before.headers.get(name) != after.headers.get(name):
                yield f"header {name} was {before.headers.get(name)!r} and is {after.headers.get(name)!r}"
        if str(before.headers.get("traceparent", ""))[:35] != str(after.headers.get("traceparent", ""))[:35] and (
            "traceparent" in before.headers
        ):
            yield "the trace id changed"

    def _check_too_large(self) -> Iterator[str]:
        """The envelope that could not be sent may be any that this hop made."""
        before, after = self.before, self.after
        if before.generation != after.generation:
            yield f"the generation was {before.generation} and is {after.generation}"
        if after.prev not in (before.prev, (*before.prev, before.curr)):
            yield f"the envelope was at {before.prev}, {before.curr} and is too large at {after.prev}, {after.curr}"

    def _check_same_envelope(self) -> Iterator[str]:
        before, after = self.before, self.after
        if (before.id, before.parent_id) != (after.id, after.parent_id):
            yield f"id and parent were {before.id}, {before.parent_id} and are {after.id}, {after.parent_id}"

    def _check_unchanged(self) -> Iterator[str]:
        before, after = self.before, self.after
        if (before.prev, before.curr, before.next) != (after.prev, after.curr, after.next):
            yield f"the route changed: {_route(before)} to {_route(after)}"
        if before.payload != after.payload:
            yield "the payload is not the one received"

    def _check_retry(self) -> Iterator[str]:
        yield from self._check_same_envelope()
        yield from self._check_unchanged()
        if self.to != self.at:
            yield f"a retry of {self.at} was sent to {self.to}"
        attempt = self.after.status.get("attempt", 0)
        if attempt != self.before.attempt + 1:
            yield f"attempt {self.before.attempt} was followed by attempt {attempt}"
        limit = max((policy.max_attempts for policy in self.spec.resiliency.policies.values()), default=1)
        if attempt > limit:
            yield f"attempt {attempt} of {self.at}, but its policies allow {limit}"
        first = self.after.headers.get("x-asya-first-attempt")
        if first is None or (self.before.attempt > 1 and first != self.before.headers.get("x-asya-first-attempt")):
            yield "a retry without the time of the first attempt"
        if not self.after.status.get("error"):
            yield "a retry without its error"

    def _check_shift(self) -> Iterator[str]:
        before, after = self.before, self.after
        if after.prev != (*before.prev, before.curr):
            yield f"after {_route(before)} came {_route(after)}, which is not one shift"
        for name in _HOP_HEADERS:
            if name in after.headers:
                yield f"header {name} left its hop"

    def _check_routing(self) -> Iterator[str]:
        yield from self._check_shift()
        yield from self._check_target()
        if self.after.status.get("attempt") != 1:
            yield f"a new hop begins with attempt {self.after.status.get('attempt')}"
        if self.after.status.get("reason") == "PolicyRouted":
            yield from self._check_same_envelope()
            if self.before.payload != self.after.payload:
                yield "the payload is not the one received"
            return
        if self.after.status.get("error"):
            yield "the envelope still has an error after a success"
        yield from self._check_frame()

    def _check_target(self) -> Iterator[str]:
        """An override changes the queue, and a header says so; the route keeps the logical name."""
        actor = self.after.curr
        target = target_of(self.before, actor)
        if self.to != target:
            yield f"an envelope for {actor}, which is {target}, was sent to {self.to}"
        resolved = self.after.headers.get("x-asya-route-resolved", {})
        if target != actor and resolved.get(actor) != {"target": target, "by": self.at}:
            yield f"{self.at} sent {actor} to {target}, but the header says {resolved.get(actor)}"

    def _check_frame(self) -> Iterator[str]:
        """Frame 0 is the envelope itself; later frames are children."""
        before, after, trail = self.before, self.after, self.after.trail
        if trail is None or before.trail is None or self.is_saved:
            return
        if self.at == "x-resume":  # the registry of pauses checks the answers
            yield from self._check_same_envelope()
            return
        if self.at == "x-checkpoint" or self._passes_payloads or self._is_origin_of_set():
            yield from self._check_same_envelope()
            if before.payload != after.payload:
                yield "the payload is not the one received"
            return
        if trail[:-1] != before.trail or self.frame is None:
            yield f"the handler did not return the payload {trail} for {before.trail}"
            return
        ahead = before.next if self.frame.next is None else self.frame.next
        if (after.curr, *after.next) != (ahead or ("",)):
            yield f"after {_route(before)} the handler set the route to {ahead}, but it is {_route(after)}"
        if self.frame.color is not None and after.headers.get("color") != self.frame.color:
            yield f"the handler set color to {self.frame.color}, but it is {after.headers.get('color')}"
        if self.frame.color is None and after.headers.get("color") != before.headers.get("color"):
            yield "the color changed, but the handler did not set it"
        if frame_index(trail) == 0:
            yield from self._check_same_envelope()
        else:
            yield from self._check_child()

    def _is_origin_of_set(self) -> bool:
        """Whether the sent envelope is slice 0 of a set that this hop opened."""
        header, former = slice_of(self.after), slice_of(self.before)
        return (
            header is not None
            and header != former
            and header["slice_index"] == 0
            and self.after.curr == header["actor"]
        )

    def _check_child(self) -> Iterator[str]:
        before, after = self.before, self.after
        if after.id == before.id or after.parent_id != before.id:
            yield f"a child of {before.id} has id {after.id} and parent {after.parent_id}"
        root = before.headers.get("x-asya-root") or before.id
        if after.headers.get("x-asya-root") != root:
            yield f"a child of the root {root} has the root {after.headers.get('x-asya-root')}"

    def _check_success(self) -> Iterator[str]:
        if self.to != "x-sink":
            yield f"a success was sent to {self.to}"
        if self.after.status.get("error") or self.after.status.get("reason") != "Completed":
            yield "a success with an error, or without reason Completed"
        if self.after.prev == self.before.prev:
            yield from self._check_same_envelope()
            yield from self._check_unchanged()
            return
        yield from self._check_shift()
        if self.after.curr:
            yield f"a success with the next actor {self.after.curr}"
        yield from self._check_frame()

    def _check_end(self) -> Iterator[str]:
        """An envelope ends as received; after frame 0, a child ends instead."""
        if self.to not in ENDS:
            yield f"an end ({self.after.phase}) was sent to {self.to}"
        if self.after.id == self.before.id:
            yield from self._check_same_envelope()
        else:
            yield from self._check_child()
        yield from self._check_unchanged()
        if self.after.phase == "failed" and not self.after.status.get("error"):
            yield "a failure without an error"
        attempt = self.after.status.get("attempt")
        if attempt != self.before.attempt:
            yield f"attempt {self.before.attempt} ended as attempt {attempt}"

    def _check_user_end(self) -> Iterator[str]:
        """A user's end actor hands the envelope on as it came, to x-sink or, if its handler failed, to x-sump."""
        yield from self._check_same_envelope()
        yield from self._check_unchanged()
        phase = self.before.phase if self.before.phase in ("succeeded", "failed", "canceled", "paused") else "succeeded"
        if (self.to, self.after.phase) not in (("x-sink", phase), ("x-sump", "failed")):
            yield f"an end actor sent an envelope that came as {self.before.phase} to {self.to} as {self.after.phase}"

    def _check_parse_error(self) -> Iterator[str]:
        """The error of an unreadable message gives the reason."""
        message = (self.after.status.get("error") or {}).get("message", "")
        if not message.startswith("Failed to parse message: "):
            yield f"a parse error has the message {message!r}"

    def _check_end_actor(self) -> Iterator[str]:
        """x-sink sends failures to x-sump, unchanged, as the object of their end holds them or as children, and copies to hooks."""
        before, after = self.before, self.after
        if self.to == "x-sump":
            if after.id != before.id:
                yield from self._check_failed_child()
            if not (self.is_stored_end and after.id == before.id):
                yield from self._check_carry()
                yield from self._check_unchanged()
            if after.phase != "failed":
                yield f"an envelope in phase {after.phase} was sent to x-sump"
        elif "x-asya-hook" in after.headers:
            if after.parent_id != before.id or not after.is_stealth or (after.prev, after.next) != ((), ()):
                yield "the envelope of a hook is not a stealth copy"
        else:
            yield f"{self.at} may not send to {self.to}"

    def _check_failed_child(self) -> Iterator[str]:
        """A refused failure leaves as a failed child, without the header of a set."""
        before, after = self.before, self.after
        yield from self._check_child()
        if after.id != ids.child_id(before.id, before.generation, len(before.prev), "error"):
            yield f"the failed child of {before.id} has the id {after.id}"
        if "x-asya-fan-in" in after.headers:
            yield "a failed child belongs to a set"


def _route(envelope: ObservedEnvelope) -> str:
    return f"{'>'.join(envelope.prev)}[{envelope.curr}]{'>'.join(envelope.next)}"
