"""Planted mistakes in waits for a time."""

from datetime import timedelta
from functools import partial
from typing import Any

from msgspec.structs import replace

from asya.tasks.aws.paused_tasks import PausedTasks
from asya.wait import waiting
from asya.wait.aws.held_envelopes import HeldEnvelopes, WaitKey
from asya.wait.lambdas import wait_release
from asya.wait.lambdas.wait_release import WaitReleases
from tests.simulation.inputs.features import Features
from tests.simulation.mistake import Mistake, substitute, wrap

WAITS: Features = frozenset({"waits", "cancels"})


def _replace_before_the_send(real: Any, held: Any, key: Any) -> Any:
    found = real(held, key)
    if isinstance(key, WaitKey) and found is not None:
        held.mark_resumed(key, at="2026-11-20T12:00:00.000000Z")
    return found


def _report_progress_only(real: Any, held: Any, actor: str, **more: Any) -> Any:
    return replace(real(held, actor, **more), status="processing")


def _due_an_hour_early(real: Any, found: Any, now: Any) -> Any:
    return real(found, now + timedelta(hours=1))


_at_waits = partial(Mistake, kind="fault-free", seed=3, features=WAITS)

MISTAKES = (
    _at_waits("sends nothing after a wait", substitute(WaitReleases, "finish", lambda *_: False)),
    _at_waits(
        "sends what waits before it is due",
        (
            substitute(wait_release, "is_due", lambda wait, _: wait is not None and not wait.is_sent),
            wrap(PausedTasks, "due_waits", _due_an_hour_early),
        ),
    ),
    Mistake(
        "replaces what it holds before it is sent",
        wrap(HeldEnvelopes, "load", _replace_before_the_send),
        "crashes",
        seed=5,
        features=WAITS,
    ),
    _at_waits("reports a wait as mere progress", wrap(waiting, "waiting_report", _report_progress_only)),
)
