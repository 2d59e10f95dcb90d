"""Declares the function of light actors."""

from asya.manifest import ActorFunction, Capability
from asya.needs import Group, Items, Payloads, sends, writes
from asya.predicates import declares_targets, deduplicates, has_circuit_breaker, keeps_input, sends_everywhere
from asya.protocol.keys import INPUTS_PREFIX
from asya.sidecar.needs import BUFFERS_FRAMES, SIDECAR

FUNCTIONS = (
    ActorFunction(
        kind="handler",
        is_named=False,
        entry_point="asya.sidecar.lambdas.wiring.sidecar",
        needs=(
            *SIDECAR,
            sends(Group.TARGETS),
            Payloads(to=(Group.TARGETS,), when=declares_targets),
            Payloads(when=sends_everywhere),
            *BUFFERS_FRAMES,
            # Only the gateway reads them.
            writes(f"{INPUTS_PREFIX}*", when=keeps_input),
            Items(table="hops", calls=("GetItem", "PutItem"), when=deduplicates),
            Items(table="breaker", calls=("GetItem", "PutItem"), when=has_circuit_breaker),
        ),
    ),
)

CAPABILITY = Capability(name="sidecar", functions=FUNCTIONS)
