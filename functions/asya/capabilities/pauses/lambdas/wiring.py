"""Lambda entry points of pause and wait actors, x-resume and the sweep, and the release of paused envelopes."""

from collections.abc import Callable

from asya.capabilities.pauses.aws.held_envelopes import HeldEnvelopes
from asya.capabilities.pauses.aws.notices import PauseNotices
from asya.capabilities.pauses.aws.paused_envelopes import PausedEnvelopes
from asya.capabilities.pauses.lambdas.pause import PauseActor, ResumeActor
from asya.capabilities.pauses.lambdas.pause_release import PauseReleases
from asya.capabilities.pauses.lambdas.sweep import PauseSweep, PauseTimers
from asya.capabilities.pauses.lambdas.wait import RetryWait, WaitActor, WaitReleases
from asya.ends.aws.end_claims import EndClaims
from asya.function.aws import clients
from asya.function.hop import Delivery
from asya.function.lambdas.function import Function
from asya.protocol import names
from asya.senders.aws.token_keys import build_token_keys
from asya.sidecar.lambdas.entry_point import queue_entry_point, schedule_entry_point
from asya.sidecar.lambdas.services import Services
from asya.tasks.aws.paused_tasks import PausedTasks
from asya.tasks.aws.stored_tasks import StoredTasks
from asya.tasks.aws.tasks import Tasks


def build_pause(services: Services) -> PauseActor:
    """Build this function's pause actor."""
    return _pause_actor(services, PauseNotices(clients.events(), services.settings.namespace))


def build_wait(services: Services) -> PauseActor | WaitActor | RetryWait:
    """Build this function's wait actor: a pause with a timer if the deadline stands still; x-wait for retries."""
    if services.settings.actor == names.WAIT:
        return RetryWait(services, HeldEnvelopes(clients.s3(), services.settings.bucket))
    if services.settings.table.actors[services.settings.actor].pauses:
        return _pause_actor(services, None)
    return WaitActor(services, HeldEnvelopes(clients.s3(), services.settings.bucket))


def _pause_actor(services: Services, notices: PauseNotices | None) -> PauseActor:
    settings = services.settings
    claims = EndClaims(clients.dynamodb(), settings.table_name("sink"), settings.table.retention.tasks)
    question = settings.table.actors[settings.actor].pause
    keys = build_token_keys(settings) if question is not None and question.callback else None
    return PauseActor(services, PausedEnvelopes(clients.s3(), settings.bucket), claims, notices, keys)


def build_resume(services: Services) -> ResumeActor:
    """Build x-resume."""
    return ResumeActor(services, PausedEnvelopes(clients.s3(), services.settings.bucket))


def build_sweep(services: Services) -> PauseSweep:
    """Build the sweep over this mesh's pauses."""
    stored, warn = StoredTasks(services), services.warn
    releases = build_releases(services, stored.tasks, services.keys.seal)
    held = HeldEnvelopes(clients.s3(), services.settings.bucket)
    sender = services.submissions(services.keys.seal, diverts=True)
    waits = WaitReleases(services.settings.table, stored.tasks, held, sender, warn)
    paused = PausedTasks(clients.dynamodb(), services.settings.table_name("tasks"))
    return PauseSweep(services, paused, stored.store, releases, waits, PauseTimers(releases, warn))


def build_releases(own: Function, tasks: Tasks, seal: Callable[[Delivery], Delivery]) -> PauseReleases:
    """Build the release of this mesh's paused envelopes.

    Args:
        seal: gives a delivery the key of its envelope.
    """
    return PauseReleases(tasks, PausedEnvelopes(clients.s3(), own.settings.bucket), own.submissions(seal), own.warn)


pause = queue_entry_point(build_pause)
wait = queue_entry_point(build_wait)
resume = queue_entry_point(build_resume)
sweep = schedule_entry_point(build_sweep)
