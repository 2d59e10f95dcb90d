"""Handlers made up from a seed: what an actor does with a payload follows from where the payload has been.

A payload carries its trail, one token per handler that has worked on it: `infer.0`, or `infer.2` for frame number 2. So every
payload that turns up anywhere tells by which handlers, in which order and as which frame, it was made; and a handler that is run
again does the same again, as streamed handlers must.
"""

from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, Literal, Protocol

from asya.runtime.fan_out import FanOut, fan_out
from tests.simulation.process import Process, current_process

HandlerKind = Literal["function", "coroutine", "generator", "async generator"]
Behavior = Literal[
    "pass", "nothing", "fail", "fan", "exit", "bad", "slow", "poison", "reroute", "big", "color", "split"
]
Trail = tuple[str, ...]

BEHAVIORS: tuple[Behavior, ...] = (
    "nothing",
    "fail",
    "fan",
    "exit",
    "bad",
    "slow",
    "poison",
    "reroute",
    "big",
    "color",
    "split",
)
MAX_TRAIL_LENGTH = 14
MAX_FAN_OUTS = 2
BIG = 9_000
ERRORS: dict[str, type[Exception]] = {
    "ConnectionError": ConnectionError,
    "ConnectionResetError": ConnectionResetError,
    "ValueError": ValueError,
    "LookupError": LookupError,
    "TimeoutError": TimeoutError,
}


@dataclass(frozen=True)
class Plan:
    """What a handler does about one payload.

    Attributes:
        seconds: that it takes.
        times: how often it fails before it works, for `fail` and `poison`; frames that leave before it fails, for `fan`.
        frames: how many it gives, for `fan`.
        error: name of what it raises.
        next: route it sets, for `reroute`; the slices' route, for `split`.
        at: the fan-in actor, for `split`.
    """

    behavior: Behavior
    seconds: float = 0.0
    times: int = 0
    frames: int = 1
    error: str | None = None
    next: tuple[str, ...] = ()
    at: str = ""


@dataclass(frozen=True)
class Program:
    """One actor's handler.

    Attributes:
        repertoire: what it may do beside passing on.
        is_nondeterministic: its frames are different each time it is run; only for those whose frames are buffered.
        actors: that it may route to.
        fan_ins: actors that put slices together.
    """

    actor: str
    seed: int
    handler_kind: HandlerKind
    repertoire: tuple[Behavior, ...]
    actors: tuple[str, ...]
    timeout: float
    is_nondeterministic: bool = False
    fan_ins: tuple[str, ...] = ()

    def plan(self, trail: Trail) -> Plan:
        """What it does about a payload that has come this way; always the same."""
        random = Random(f"{self.seed}/{self.actor}/{'/'.join(_without_suffixes(trail))}")
        seconds = random.choice((0.0, 0.0, 0.01, 0.2, self.timeout * 0.5))
        if not self.repertoire or random.random() < 0.55 or len(trail) > MAX_TRAIL_LENGTH:
            return Plan("pass", seconds)
        behavior = random.choice(self.repertoire)
        match behavior:
            case "fail":
                return Plan(behavior, seconds, times=random.choice((1, 1, 2, 99)), error=random.choice(sorted(ERRORS)))
            case "slow":
                return Plan(behavior, self.timeout * random.choice((0.9, 1.1, 5.0)), times=random.choice((1, 99)))
            case "poison":
                return Plan(behavior, seconds, times=random.choice((1, 99)))
            case "fan":
                if sum(not token.partition("~")[0].endswith(".0") for token in trail) >= MAX_FAN_OUTS:
                    return Plan("pass", seconds)
                frames = random.randint(2, 4)
                error = random.choice((None, None, random.choice(sorted(ERRORS))))
                return Plan(behavior, seconds, times=random.randint(0, frames), frames=frames, error=error)
            case "split":
                if not self.fan_ins or sum(is_slice((token,)) for token in trail) >= MAX_FAN_OUTS:
                    return Plan("pass", seconds)
                to = tuple(random.choices(self.actors, k=random.randint(1, 2)))
                slices = random.choices((0, 1, 2, 3, 12), (2, 3, 3, 3, 1))[0]
                return Plan(behavior, seconds, frames=slices, next=to, at=random.choice(self.fan_ins))
            case "reroute":
                ahead = random.choices((*self.actors, "nowhere", "x-sink"), k=random.randint(0, 3))
                return Plan(behavior, seconds, next=tuple(ahead))
        return Plan(behavior, seconds)


@dataclass
class OutputFrame:
    """A frame that a handler gave.

    Attributes:
        next: the route it set for it; None if it did not.
        color: the header of this name that it set; None if it did not.
    """

    trail: Trail
    next: tuple[str, ...] | None = None
    color: str | None = None


@dataclass
class HandlerCall:
    """One call of a handler, as the handler saw it."""

    actor: str
    trail: Trail
    process: Process
    began: float
    deadline: datetime | None = None
    frames: list[OutputFrame] = field(default_factory=list)
    ended: Literal["not", "well", "raised"] = "not"


class CallRecorder(Protocol):
    """Keeps book of what handlers do."""

    def record_call(self, call: HandlerCall) -> int:
        """A handler is called; gives how often it was before with the same payload."""

    def record_frame(self, call: HandlerCall, frame: OutputFrame) -> None:
        """A handler gives a frame, or hands out a slice."""


def handler_of(program: Program, recorder: CallRecorder) -> Callable[[Any], Any]:
    """The handler, as user code would write it."""

    def begin(payload: dict[str, Any]) -> tuple[Plan, HandlerCall, int]:
        trail = tuple(payload["trail"])
        process = current_process()
        call = HandlerCall(program.actor, trail, process, process.simulation.scheduler.seconds)
        before = recorder.record_call(call)
        plan = program.plan(trail)
        if plan.behavior == "slow" and before >= plan.times:
            return Plan("pass"), call, before
        call.process.spend(plan.seconds)
        return plan, call, before

    def frame(
        payload: dict[str, Any],
        call: HandlerCall,
        index: int,
        before: int,
        plan: Plan,
        ahead: tuple[str, ...] | None = None,
        color: str | None = None,
    ) -> dict[str, Any]:
        token = f"{program.actor}.{index}"
        if program.is_nondeterministic:
            token += f"~{before}"
        trail = (*call.trail, token)
        recorder.record_frame(call, OutputFrame(trail, ahead, color))
        made = payload | {"trail": list(trail)}
        made.pop("padding", None)
        if plan.behavior == "big":
            made["padding"] = "p" * BIG
        return made

    def fail_if_due(plan: Plan, call: HandlerCall, before: int) -> None:
        call.ended = "raised"
        match plan.behavior:
            case "fail" if before < plan.times:
                raise ERRORS[plan.error or "ValueError"](f"call number {before + 1} of {program.actor} fails")
            case "exit":
                raise SystemExit(3)
            case "poison" if before < plan.times:
                call.process.crash_cause = "/".join(call.trail)
                call.process.crash("of its handler")
            case "bad":
                raise TypeError("no such operation")
        call.ended = "well"

    def slices(payload: dict[str, Any], call: HandlerCall, before: int, plan: Plan) -> FanOut:
        items = []
        for index in range(1, plan.frames + 1):
            trail = (*call.trail, f"{program.actor}.{index}s~{before}")
            recorder.record_frame(call, OutputFrame(trail, (*plan.next, plan.at)))
            items.append({"trail": list(trail)})
        return fan_out(items, to=plan.next, into="/results", at=plan.at)

    def function(payload: Any) -> Any:
        plan, call, before = begin(payload)
        fail_if_due(plan, call, before)
        if plan.behavior == "split":
            return slices(payload, call, before, plan)
        return None if plan.behavior == "nothing" else frame(payload, call, 0, before, plan)

    async def coroutine(payload: Any) -> Any:
        return function(payload)

    def generator(payload: Any) -> Generator[Any, Any, None]:
        plan, call, before = begin(payload)
        call.ended = "raised"
        if plan.behavior == "bad":
            yield {"a": {1, 2}}
        fail_if_due(plan, call, before)
        if plan.behavior == "nothing":
            yield None
            return
        if plan.behavior == "split":
            yield slices(payload, call, before, plan)
            return
        color = ahead = None
        if plan.behavior == "color":
            color = f"{program.actor}-{len(call.trail)}"
            yield ("SET", ".headers.color", color)
        if plan.behavior == "reroute":
            ahead = plan.next
            yield ("SET", ".route.next", list(ahead))
        call.ended = "not"
        for index in range(plan.frames):
            if plan.error is not None and plan.behavior == "fan" and index == plan.times:
                call.ended = "raised"
                raise ERRORS[plan.error]("after some frames")
            yield frame(payload, call, index, before, plan, ahead, color)
        call.ended = "well"

    async def async_generator(payload: Any) -> AsyncGenerator[Any, Any]:
        steps = generator(payload)
        answer = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                return
            answer = yield step

    match program.handler_kind:
        case "function":
            return function
        case "coroutine":
            return coroutine
        case "generator":
            return generator
        case _:
            return async_generator


def frame_index(trail: Trail) -> int:
    """As which frame, or slice, of its last handler a payload was given."""
    return int(trail[-1].partition("~")[0].rpartition(".")[2].removesuffix("s"))


def is_slice(trail: Trail) -> bool:
    """Whether a payload was handed out as a slice by its last handler."""
    return trail[-1].partition("~")[0].endswith("s")


def _without_suffixes(trail: Trail) -> Trail:
    """The trail without what is different each time."""
    return tuple(token.partition("~")[0] for token in trail)
