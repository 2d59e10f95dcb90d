"""Lambda entry points of fan-in actors and of the sweep over open sets."""

from asya.capabilities.fan_in.aws.set_repeats import SetRepeats
from asya.capabilities.fan_in.aws.sets import FanInSets
from asya.capabilities.fan_in.aws.slice_store import SliceStore
from asya.capabilities.fan_in.lambdas.fan_in import FanInActor
from asya.capabilities.fan_in.lambdas.repeating import SetRepeater
from asya.capabilities.fan_in.lambdas.set_coordinator import SetCoordinator
from asya.capabilities.fan_in.lambdas.sweep import FanInSweep
from asya.ends.lambdas.ends import end_objects, end_results
from asya.function.aws import clients
from asya.protocol.mesh_table import FanIn
from asya.sidecar.lambdas.entry_point import queue_entry_point, schedule_entry_point
from asya.sidecar.lambdas.services import Services


def build_fan_in(services: Services) -> FanInActor:
    """Build this function's fan-in actor."""
    rule = services.settings.table.actors[services.settings.actor].fan_in or FanIn()
    coordinator = SetCoordinator(services, _sets(services), _slices(services), rule)
    records = SetRepeats(clients.dynamodb(), table=services.settings.table_name("fan-in"))
    objects = end_objects(services, end_results(services))
    return FanInActor(services, coordinator, objects, SetRepeater(coordinator, records))


def build_sweep(services: Services) -> FanInSweep:
    """Build the sweep over this mesh's open sets."""
    return FanInSweep(services, _sets(services))


def _sets(services: Services) -> FanInSets:
    return FanInSets(clients.dynamodb(), table=services.settings.table_name("fan-in"))


def _slices(services: Services) -> SliceStore:
    return SliceStore(
        clients.dynamodb(),
        clients.s3(),
        table=services.settings.table_name("fan-in"),
        bucket=services.settings.bucket,
        threaded=services.environment.is_threaded,
    )


fan_in = queue_entry_point(build_fan_in)
sweep = schedule_entry_point(build_sweep)
