"""Checks calls of handlers and their output."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from asya.runtime.call import BLOCKED_LOOP_GRACE
from tests.simulation.checks.ledger import Ledger, hop_key
from tests.simulation.inputs.programs import HandlerCall, OutputFrame

# A state that was read longer ago is read again before a hop starts, in seconds.
STATE_AGE = 5.0


@dataclass
class CallChecks:
    """Checks each call of a handler."""

    ledger: Ledger

    @property
    def is_mended(self) -> bool:
        """Whether the handlers crash their process no longer."""
        return self.ledger.handlers_are_mended

    def record_call(self, call: HandlerCall) -> int:
        """Record a call; return the number of earlier calls with the same payload."""
        key = (call.actor, call.trail)
        before = len(self.ledger.calls[key])
        self.ledger.calls[key].append(call)
        call.process.note(f"handler {call.actor} {'/'.join(call.trail)} (call {before + 1})")
        self._check_not_completed(call)
        self._check_not_canceled(call)
        self._check_in_time(call)
        return before

    def record_frame(self, call: HandlerCall, frame: OutputFrame) -> None:
        """Record an output frame."""
        if call.deadline is not None and call.process.now() > call.deadline + timedelta(seconds=BLOCKED_LOOP_GRACE):
            self.ledger.report_violation(
                f"the handler of {call.actor} returned {frame.trail} after its deadline {call.deadline}"
            )
        call.frames.append(frame)
        self.ledger.frames[frame.trail] = frame

    def _check_not_completed(self, call: HandlerCall) -> None:
        """The sidecar does not call the handler of a completed hop."""
        invocation = call.process.invocation
        if invocation is None or not self.ledger.mesh.actors[call.actor].deduplicate:
            return
        envelopes = [
            envelope
            for message in invocation.messages
            if (envelope := self.ledger.read(message)) is not None and envelope.trail == call.trail
        ]
        if envelopes and all(
            self.ledger.completed_hops.get(hop_key(envelope), float("inf")) < invocation.began for envelope in envelopes
        ):
            self.ledger.report_violation(
                f"the handler of {call.actor} was called for {envelopes[0].id} after this attempt was completed"
            )

    def _check_in_time(self, call: HandlerCall) -> None:
        """The sidecar does not call a handler after the deadline, which stands still from a pause on."""
        envelopes = [
            envelope
            for message in (call.process.invocation.messages if call.process.invocation else ())
            if (envelope := self.ledger.read(message)) is not None and envelope.trail == call.trail
        ]
        if self.ledger.mesh.actors[call.actor].kind == "end":
            return  # end actors know no deadline
        if any(self.ledger.pauses.passed_at(envelope) is not None for envelope in envelopes):
            return  # a late copy has the deadline of before the pause
        deadlines = [text for envelope in envelopes if (text := envelope.status.get("deadline_at")) is not None]
        if deadlines and len(deadlines) == len(envelopes):
            call.deadline = max(datetime.fromisoformat(text) for text in deadlines)
            if call.deadline < call.process.now():
                self.ledger.report_violation(
                    f"the handler of {call.actor} was called for {envelopes[0].id} after its deadline {call.deadline}"
                )

    def _check_not_canceled(self, call: HandlerCall) -> None:
        """After a query of the task states, the sidecar does not call handlers of canceled tasks.

        A call that took long is followed by another query.
        """
        invocation = call.process.invocation
        if invocation is None or invocation.states_queried_at is None:
            return
        call.states_read_at = invocation.states_queried_at
        before, invocation.last_call = invocation.last_call, call
        asked_at = invocation.states_queried_at
        is_old = before is not None and before.spent_until - asked_at > STATE_AGE
        for message in invocation.messages:
            envelope = self.ledger.read(message)
            if envelope is None or envelope.trail != call.trail or envelope.is_stealth or not envelope.status:
                continue
            if is_old and asked_at == invocation.states_asked_at:
                self.ledger.report_violation(
                    f"the handler of {call.actor} was called for {envelope.id} with the states of {asked_at:.1f} s"
                )
            for task in (envelope.id, envelope.headers.get("x-asya-root")):
                if isinstance(task, str) and self.ledger.canceled.get(task, float("inf")) < asked_at:
                    self.ledger.report_violation(
                        f"the handler of {call.actor} was called for {envelope.id} after {task} was canceled"
                    )
