"""The Lambda entry points of x-sink, x-sump, x-checkpoint and end actors."""

from asya.ends.aws.results import ResultIndex, Results
from asya.ends.lambdas.checkpoint import CheckpointActor
from asya.ends.lambdas.end_actor import EndActor
from asya.ends.lambdas.ends import end_results
from asya.ends.lambdas.sink import SinkActor
from asya.ends.lambdas.sump import SumpActor
from asya.function.aws import clients
from asya.light.lambdas.secret_calls import load_handler, with_secrets
from asya.light.lambdas.sidecar import own_actor
from asya.protocol import names
from asya.runtime.call import HandlerInvoker
from asya.runtime.load import LoadError
from asya.runtime.modes import EndMode, EnvelopeMode
from asya.sidecar.lambdas.entry_point import SharedEntryPoint, queue_entry_point
from asya.sidecar.lambdas.services import Services


def build_sink(services: Services) -> SinkActor:
    """Build x-sink."""
    results = end_results(services)
    return SinkActor(services, results, ResultIndex(results))


def build_sump(services: Services) -> SumpActor:
    """Build x-sump."""
    results = end_results(services)
    return SumpActor(services, results, ResultIndex(results))


def build_checkpoint(services: Services) -> CheckpointActor:
    """Build x-checkpoint. The gateway reads checkpoints for replays, from the S3 of AWS."""
    return CheckpointActor(services, Results(clients.s3(), services.settings.results_uri))


def build_end_actor(services: Services) -> EndActor:
    """Build the user's end actor of this function.

    Raises:
        LoadError: the handler cannot be loaded, or the actor's options do not suit an end actor.
        SecretError: a secret of the actor cannot be read.
    """
    spec, name = own_actor(services)
    handler = load_handler(services, name)
    if spec.handler_mode == "payload" or spec.validate:
        raise LoadError(f"end actor {services.settings.actor!r} needs handler_mode: envelope and validate: false")
    mode = EndMode(EnvelopeMode(spec.handler_mode))
    call = HandlerInvoker(handler, mode, timer=services.environment)
    return EndActor(services, with_secrets(services, call), spec.timeout)


ends = SharedEntryPoint({names.SINK: queue_entry_point(build_sink), names.SUMP: queue_entry_point(build_sump)})
checkpoint = queue_entry_point(build_checkpoint)
end_actor = queue_entry_point(build_end_actor)
