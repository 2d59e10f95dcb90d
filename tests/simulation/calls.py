"""When a handler may be called, and with what."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from asya.runtime.call import BLOCKED_LOOP_GRACE
from tests.simulation.ledger import Ledger, place_of
from tests.simulation.programs import Given, HandlerCall


@dataclass
class CallChecks:
    """Looks at every call of a handler."""

    ledger: Ledger

    def called(self, call: HandlerCall) -> int:
        """A handler is called; gives how often it was before, with the same payload."""
        key = (call.actor, call.trail)
        before = len(self.ledger.calls[key])
        self.ledger.calls[key].append(call)
        call.process.note(f"handler {call.actor} {'/'.join(call.trail)} (call {before + 1})")
        self._check_not_marked(call)
        self._check_not_canceled(call)
        self._check_in_time(call)
        return before

    def gave(self, call: HandlerCall, given: Given) -> None:
        """A handler gives a frame."""
        if call.deadline is not None and call.process.now() > call.deadline + timedelta(seconds=BLOCKED_LOOP_GRACE):
            self.ledger.violated(f"the handler of {call.actor} gave {given.trail} after its deadline, {call.deadline}")
        call.given.append(given)
        self.ledger.frames[given.trail] = given

    def _check_not_marked(self, call: HandlerCall) -> None:
        """A hop that was marked as done is not done again."""
        work = call.process.work
        if work is None or not self.ledger.mesh.actors[call.actor].deduplicate:
            return
        found = [seen for message in work.messages if (seen := self.ledger.read(message)) is not None]
        about = [seen for seen in found if seen.trail == call.trail]
        if about and all(self.ledger.marked.get(place_of(seen), float("inf")) < work.began for seen in about):
            self.ledger.violated(
                f"the handler of {call.actor} was called for {about[0].id}, though this attempt was done"
            )

    def _check_in_time(self, call: HandlerCall) -> None:
        """No handler is called after its envelope's deadline."""
        about = [
            seen
            for message in (call.process.work.messages if call.process.work else ())
            if (seen := self.ledger.read(message)) is not None and seen.trail == call.trail
        ]
        deadlines = [text for seen in about if (text := seen.status.get("deadline_at")) is not None]
        if deadlines and len(deadlines) == len(about):
            call.deadline = max(datetime.fromisoformat(text) for text in deadlines)
            if call.deadline < call.process.now():
                self.ledger.violated(f"the handler of {call.actor} was called for {about[0].id} after {call.deadline}")

    def _check_not_canceled(self, call: HandlerCall) -> None:
        """A canceled task's handlers are not called any more, where the gateway could be asked."""
        work = call.process.work
        if work is None or work.states_asked_at is None:
            return
        for message in work.messages:
            seen = self.ledger.read(message)
            if seen is None or seen.trail != call.trail or seen.is_stealth or not seen.status:
                continue
            for task in (seen.id, seen.headers.get("x-asya-root")):
                if isinstance(task, str) and self.ledger.canceled.get(task, float("inf")) < work.states_asked_at:
                    self.ledger.violated(
                        f"the handler of {call.actor} was called for {seen.id}, though {task} was canceled"
                    )
