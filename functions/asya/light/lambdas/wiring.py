"""The Lambda entry point of a light actor."""

from functools import partial

from asya.capabilities.legacy.options import RESPONSES
from asya.capabilities.legacy.responses import read_response
from asya.light.lambdas.secret_calls import load_handler, with_secrets
from asya.light.lambdas.sidecar import Sidecar
from asya.protocol.mesh_table import Actor
from asya.runtime.call import HandlerInvoker
from asya.runtime.load import LoadError
from asya.runtime.signatures import typed
from asya.sidecar.lambdas.entry_point import queue_entry_point
from asya.sidecar.lambdas.services import Services


def build_sidecar(services: Services) -> Sidecar:
    """Build the sidecar of this function's actor.

    Raises:
        LoadError: the handler cannot be loaded.
        SecretError: a secret of the actor cannot be read.
    """
    spec, name = own_actor(services)
    handler = load_handler(services, name)
    held = typed(name, handler, spec.handler_mode, lists_fan_out=spec.fan_out_lists)
    responses = partial(read_response, RESPONSES.of(spec))
    call = HandlerInvoker(held.call, held.mode, spec.fan_out_lists, responses, services.environment)
    return Sidecar(services, with_secrets(services, call), spec.deduplicate)


def own_actor(services: Services) -> tuple[Actor, str]:
    """This function's actor, and the name of its handler.

    Raises:
        LoadError: the actor has no handler.
    """
    actor = services.settings.actor
    spec = services.settings.table.actors[actor]
    if spec.handler is None:
        raise LoadError(f"actor {actor!r} is of kind {spec.kind!r} and has no handler")
    return spec, spec.handler


sidecar = queue_entry_point(build_sidecar)
