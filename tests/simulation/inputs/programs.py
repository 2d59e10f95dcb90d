"""Random handlers: the seed and the trail of a payload determine the behavior of an actor.

A payload carries its trail: one token per handler that processed it, such as `infer.0`, or `infer.2` for frame number 2. The
trail shows which handlers made a payload, in which order and as which frame. A repeated call behaves the same, as the protocol
requires of streamed handlers.
"""

from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, Literal, Protocol

from asya.runtime.fan_out import FanOut, fan_out
from asya.testing.services.process import Process, current_process

HandlerKind = Literal["function", "coroutine", "generator", "async generator"]
Behavior = Literal[
    "pass",
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
    "die",
    "flaky",
    "overtaken",
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
# Behaviors whose later calls differ: the process dies between frames; the first calls succeed and the later ones fail, or
# come after the time limit.
RERUN_BEHAVIORS: tuple[Behavior, ...] = ("die", "flaky", "overtaken")
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
    """The behavior of a handler for one payload.

    Attributes:
        seconds: the duration of the call.
        times: for `fail`, `slow`, `poison` and `die`, the number of bad calls; for `flaky` and `overtaken` of good ones; for
            `fan`, the frames before the error.
        frames: the number of frames, or of slices if `at` is set.
        error: the name of the exception.
        next: the route that it sets, for `reroute` and `die`; the route of the slices if `at` is set.
        at: the fan-in actor, for `split` and for a `flaky` fan-out.
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
    """The handler of one actor.

    Attributes:
        repertoire: its behaviors beside `pass`.
        actors: the actors that it may route to.
        is_nondeterministic: whether each call produces other frames; only valid with buffered frames.
        fan_ins: the fan-in actors for its slices.
        version: marks the trails of a handler that was deployed later.
    """

    actor: str
    seed: int
    handler_kind: HandlerKind
    repertoire: tuple[Behavior, ...]
    actors: tuple[str, ...]
    timeout: float
    is_nondeterministic: bool = False
    fan_ins: tuple[str, ...] = ()
    version: str = ""

    def plan(self, trail: Trail) -> Plan:
        """Return the plan for a payload with this trail; equal trails have equal plans."""
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
            case "die":
                if sum(not token.partition("~")[0].endswith(".0") for token in trail) >= MAX_FAN_OUTS:
                    return Plan("pass", seconds)
                onward = (random.choice(self.actors),) if random.random() < 0.7 else ()
                frames = random.randint(2, 4)
                return Plan(behavior, seconds, times=random.choice((1, 1, 2, 99)), frames=frames, next=onward)
            case "flaky" if self.fan_ins and random.random() < 0.4:
                to = tuple(random.choices(self.actors, k=1))
                error, at = random.choice(sorted(ERRORS)), random.choice(self.fan_ins)
                return Plan(behavior, seconds, times=1, frames=random.randint(1, 3), error=error, next=to, at=at)
            case "flaky" | "overtaken":
                error = random.choice(sorted(ERRORS)) if behavior == "flaky" else None
                return Plan(behavior, seconds, times=random.choice((1, 1, 2)), error=error)
            case "reroute":
                ahead = random.choices((*self.actors, "nowhere", "x-sink"), k=random.randint(0, 3))
                return Plan(behavior, seconds, next=tuple(ahead))
        return Plan(behavior, seconds)


@dataclass
class OutputFrame:
    """An output frame of a handler.

    Attributes:
        next: the route that the handler set; None if it set none.
        color: the `color` header that the handler set; None if it set none.
    """

    trail: Trail
    next: tuple[str, ...] | None = None
    color: str | None = None


@dataclass
class HandlerCall:
    """One call of a handler.

    Attributes:
        spent_until: when the time that it takes has passed, in virtual seconds.
        states_read_at: when the states that it began with were read; None if they were not.
    """

    actor: str
    trail: Trail
    process: Process
    began: float
    spent_until: float = 0.0
    states_read_at: float | None = None
    deadline: datetime | None = None
    frames: list[OutputFrame] = field(default_factory=list)
    outcome: Literal["unfinished", "succeeded", "raised"] = "unfinished"


class CallRecorder(Protocol):
    """Records the calls and the output of handlers."""

    @property
    def is_mended(self) -> bool:
        """Whether the handlers crash their process no longer."""

    def record_call(self, call: HandlerCall) -> int:
        """Record a call; return the number of earlier calls with the same payload."""

    def record_frame(self, call: HandlerCall, frame: OutputFrame) -> None:
        """Record an output frame or a slice."""


def handler_of(program: Program, recorder: CallRecorder) -> Callable[[Any], Any]:
    """Build the handler of a program, in the form of user code."""

    def begin(payload: dict[str, Any]) -> tuple[Plan, HandlerCall, int]:
        trail = tuple(payload["trail"])
        process = current_process()
        call = HandlerCall(program.actor, trail, process, process.simulation.scheduler.seconds)
        before = recorder.record_call(call)
        plan = program.plan(trail)
        if plan.behavior == "slow" and before >= plan.times:
            return Plan("pass"), call, before
        try:
            call.process.spend(
                program.timeout * 5.0 if plan.behavior == "overtaken" and before >= plan.times else plan.seconds
            )
        finally:
            call.spent_until = process.monotonic()
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
        token = f"{program.actor}{program.version}.{index}"
        if program.is_nondeterministic:
            token += f"~{before}"
        trail = (*call.trail, token)
        recorder.record_frame(call, OutputFrame(trail, ahead, color))
        output = payload | {"trail": list(trail)}
        output.pop("padding", None)
        if plan.behavior == "big":
            output["padding"] = "p" * BIG
        return output

    def fail_if_planned(plan: Plan, call: HandlerCall, before: int) -> None:
        call.outcome = "raised"
        match plan.behavior:
            case "fail" if before < plan.times:
                raise ERRORS[plan.error or "ValueError"](f"call number {before + 1} of {program.actor} fails")
            case "flaky" if before >= plan.times:
                raise ERRORS[plan.error or "ValueError"](f"call number {before + 1} of {program.actor} fails")
            case "exit":
                raise SystemExit(3)
            case "poison" if before < plan.times and not recorder.is_mended:
                call.process.crash_cause = "/".join(call.trail)
                call.process.crash("in its handler")
            case "bad":
                raise TypeError("no such operation")
        call.outcome = "succeeded"

    def slices(payload: dict[str, Any], call: HandlerCall, before: int, plan: Plan) -> FanOut:
        items = []
        for index in range(1, plan.frames + 1):
            trail = (*call.trail, f"{program.actor}{program.version}.{index}s~{before}")
            recorder.record_frame(call, OutputFrame(trail, (*plan.next, plan.at)))
            items.append({"trail": list(trail)})
        return fan_out(items, to=plan.next, into="/results", at=plan.at)

    def function(payload: Any) -> Any:
        plan, call, before = begin(payload)
        fail_if_planned(plan, call, before)
        if plan.at:
            return slices(payload, call, before, plan)
        return None if plan.behavior == "nothing" else frame(payload, call, 0, before, plan)

    async def coroutine(payload: Any) -> Any:
        return function(payload)

    def generator(payload: Any) -> Generator[Any, Any, None]:
        plan, call, before = begin(payload)
        call.outcome = "raised"
        if plan.behavior == "bad":
            yield {"a": {1, 2}}
        fail_if_planned(plan, call, before)
        if plan.behavior == "nothing":
            yield None
            return
        if plan.at:
            yield slices(payload, call, before, plan)
            return
        color = ahead = None
        if plan.behavior == "color":
            color = f"{program.actor}-{len(call.trail)}"
            yield ("SET", ".headers.color", color)
        if plan.behavior in ("reroute", "die"):
            ahead = plan.next
            yield ("SET", ".route.next", list(ahead))
        call.outcome = "unfinished"
        for index in range(plan.frames):
            if plan.error is not None and plan.behavior == "fan" and index == plan.times:
                call.outcome = "raised"
                raise ERRORS[plan.error]("after some frames")
            if plan.behavior == "die" and index == 1 and before < plan.times and not recorder.is_mended:
                call.process.linger()
                call.process.crash("between two frames")
            yield frame(payload, call, index, before, plan, ahead, color)
        call.outcome = "succeeded"

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
    """Return the index of the frame, or of the slice, that the last handler made."""
    return int(trail[-1].partition("~")[0].rpartition(".")[2].removesuffix("s"))


def is_slice(trail: Trail) -> bool:
    """Whether the last handler made the payload as a slice."""
    return trail[-1].partition("~")[0].endswith("s")


def _without_suffixes(trail: Trail) -> Trail:
    """Return the trail without call numbers."""
    return tuple(token.partition("~")[0] for token in trail)
