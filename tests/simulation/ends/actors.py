"""Random end actors of users, and their handlers."""

from collections.abc import Callable
from random import Random
from typing import Any

from asya.protocol.mesh_table import Actor, Batch
from asya.testing.services.faults import FaultProfile
from tests.simulation.inputs.handlers import handler_name
from tests.simulation.inputs.programs import Behavior, CallRecorder, Program, handler_of

NAME = "archive"
BEHAVIORS: tuple[Behavior, ...] = ("nothing", "fail", "exit", "slow", "poison", "flaky")


def end_actors(random: Random, profile: FaultProfile) -> tuple[dict[str, Actor], dict[str, Program]]:
    """Draw an end actor and its program."""
    timeout = random.choice((2.0, 20.0))
    actor = Actor(
        kind="end",
        handler=handler_name(NAME),
        handler_mode="envelope",
        validate=False,
        timeout=timeout,
        batch=Batch(size=random.choice((1, 3, 10))),
    )
    repertoire = tuple(
        behavior for behavior in BEHAVIORS if random.random() < 0.3 and (behavior != "poison" or profile.poison)
    )
    program = Program(NAME, random.getrandbits(32), "function", repertoire, (NAME,), timeout)
    return {NAME: actor}, {NAME: program}


def end_handler_of(program: Program, recorder: CallRecorder) -> Callable[[Any], Any]:
    """Build the handler of an end actor: it gets whole envelopes, and its result is ignored."""
    handle = handler_of(program, recorder)

    def handler(envelope: dict[str, Any]) -> None:
        handle(envelope["payload"])

    return handler
