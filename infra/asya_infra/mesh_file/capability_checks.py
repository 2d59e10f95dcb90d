"""Checks what a capability declares that a mesh file names: its names are free, and its code exists."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from asya.gateway.call_table import CALLS
from asya.manifest import ActorFunction, Capability, Function, Queues, Requests, Schedule
from asya.monitoring import AWS_METRICS, Delay, Series, Share, Watched
from asya.needs import Calls, Need, Resource
from asya.predicates import always, is_actor
from asya.protocol import names
from asya.registry import Registry
from asya_infra.mesh_file.actor_model import ActorSection
from asya_infra.mesh_file.sections import keys_of
from asya_infra.mesh_file.user_code import CodeError, find_definition

_OF_THE_PRODUCT = {Resource.APPLICATION, Resource.JOB_RUNS, Resource.JOB_ROLES}
"""Resources whose addresses only stacks of the product have, and what would let a function run code as another."""
_CALLERS = (Queues, Schedule, Requests)


def findings(capability: Capability, package: str, code: Path, others: Registry) -> Iterator[str]:
    """Yield what is wrong with a capability.

    Args:
        capability: what its manifest declares.
        package: its package in the folder of code.
        code: the folder.
        others: the capabilities before it.
    """
    for each in capability.functions:
        yield from _of_mesh(each, others) if isinstance(each, Function) else _of_kind(each, others)
        yield from _code(code, package, each.entry_point, _place(each))
    yield from _options(capability, others)
    yield from _calls(capability, package, code, others)
    yield from _monitoring(capability, others)
    yield from _stores(capability, others)
    for command in capability.commands:
        yield from _code(code, package, command.entry_point, f"the command {command.name!r}")


def _place(function: Function | ActorFunction) -> str:
    name = function.name if isinstance(function, Function) else function.kind
    return f"the {'function' if isinstance(function, Function) else 'kind'} {name!r}"


def _of_mesh(function: Function, others: Registry) -> Iterator[str]:
    place, name = _place(function), function.name
    try:
        names.check_label(name, "function")
    except ValueError as error:
        yield str(error)
    if not name.startswith("x-"):
        yield f"{place}: the name should begin with x-, which no actor of a mesh has"
    taken = (*others.functions, *others.steps, *names.SYSTEM_FUNCTIONS, names.CREW_LOGS, *others.own_queues)
    if name in taken:
        yield f"{place}: the mesh has a function of this name already; rename it"
    if not isinstance(function.called_by, _CALLERS) or function.exists is is_actor:
        yield f"{place}: should be called by Queues, Schedule or Requests"
    yield from _needs(function.needs, place)
    if isinstance(function.called_by, Queues) and (function.called_by.names or function.called_by.has_envelopes):
        yield f"{place}: takes from the queue of its own name, without envelopes (has_envelopes=False); actors have kinds"


def _needs(needs: Iterable[Need], place: str) -> Iterator[str]:
    for need in needs:
        if isinstance(need, Calls) and need.on in _OF_THE_PRODUCT:
            yield f"{place}: only functions of the product may call {need.on.value}"


def _of_kind(function: ActorFunction, others: Registry) -> Iterator[str]:
    place = _place(function)
    if function.kind in others.actor_functions or function.kind == "crew":
        yield f"{place}: the mesh has a kind of this name already; rename it"
    if function.queues is None or function.timeout is None:
        yield f"{place}: needs queues and a timeout, because its actors have no handler"
    yield from _needs(function.needs, place)
    if function.crew or function.on_demand or not function.is_named:
        yield f"{place}: the mesh file has its actors; leave crew, on_demand and is_named out"


def _options(capability: Capability, others: Registry) -> Iterator[str]:
    kinds = {*others.actor_functions, *(each.kind for each in capability.functions if isinstance(each, ActorFunction))}
    taken = {*keys_of(ActorSection), "written", *others.options}
    for option in capability.options:
        place = f"the option {option.key!r}"
        if not option.key.isidentifier() or option.key in taken:
            yield f"{place}: actors have a key of this name already, or it is no name; rename it"
        if unknown := sorted({*option.kinds} - kinds):
            yield f"{place}: there is no kind {unknown[0]!r}"
        if option.is_required and (not option.kinds or not option.example):
            yield f"{place}: without a default, it needs kinds whose actors must have it, and an example for the message"
        taken.add(option.key)
    own = {option.key for option in capability.options}
    for key, needs in capability.option_needs.items():
        place = f"the needs of the option {key!r}"
        if key not in own:
            yield f"{place}: the capability declares no such option"
        if any(need.when is not always for need in needs):
            yield f"{place}: they hold for actors with the option; leave `when` out"
        yield from _needs(needs, place)


def _stores(capability: Capability, others: Registry) -> Iterator[str]:
    for table in capability.tables:
        if table.name in others.tables or table.streams_changes:
            yield f"the table {table.name!r}: the mesh has it already, or it streams changes, which no function takes"
    taken = [each.name for each in others.prefixes if each.store == "bucket"]
    for prefix in capability.prefixes:
        place = f"the prefix {prefix.name!r}"
        if prefix.store != "bucket" or not prefix.name.endswith("/"):
            yield f"{place}: should end with / and be in the bucket of the mesh"
        elif again := [name for name in taken if name.startswith(prefix.name) or prefix.name.startswith(name)]:
            yield f"{place}: its objects would expire with those of {again[0]!r}; rename it"


def _monitoring(capability: Capability, others: Registry) -> Iterator[str]:
    for metric in capability.metrics:
        if metric.name in others.metrics or metric.name in AWS_METRICS:
            yield f"the metric {metric.name!r}: the mesh has a metric of this name already; rename it"
    known = {*others.metrics, *AWS_METRICS, *(metric.name for metric in capability.metrics)}
    alarms = {each.name for each in others.alarms}
    for alarm in capability.alarms:
        place = f"the alarm {alarm.name!r}"
        if alarm.name in alarms:
            yield f"{place}: the mesh has an alarm of this name already; rename it"
        if others.thresholds.get(alarm.threshold.key, alarm.threshold) != alarm.threshold:
            yield f"{place}: the mesh has another threshold {alarm.threshold.key!r} already; rename it"
        yield from _series(place, alarm.watched, known)
    for graph in capability.graphs:
        for line in graph.lines:
            yield from _series(f"the graph {graph.title!r}", line, known)


def _series(place: str, watched: Watched, known: set[str]) -> Iterator[str]:
    if isinstance(watched, Share):
        series = [watched.part, watched.rest]
    else:
        series = [] if isinstance(watched, Delay) else [watched if isinstance(watched, Series) else watched.series]
    for each in series:
        if each.metric not in known:
            yield f"{place}: there is no metric {each.metric!r}"


def _calls(capability: Capability, package: str, code: Path, others: Registry) -> Iterator[str]:
    answering = {
        each.name
        for each in capability.functions
        if isinstance(each, Function) and isinstance(each.called_by, Requests)
    }
    calls = [*CALLS, *(call for other in others.capabilities for call in other.calls)]
    routes = {call.route for call in calls}
    for call in capability.calls:
        place = f"the call {call.route}"
        if call.function not in answering:
            yield f"{place}: should be answered by a function of the capability that Requests call; got {call.function!r}"
        if call.route in routes:
            yield f"{place}: the gateway has this call already"
        if not call.path.startswith("/"):
            yield f"{place}: the path should begin with /"
        yield from _code(code, package, call.handler, place)
        routes.add(call.route)


def _code(code: Path, package: str, name: str, place: str) -> Iterator[str]:
    """Check that a name leads to code of the package, and to no other code of the mesh."""
    if not name.startswith(f"{package}."):
        yield f"{place}: the code should be in the package {package!r}; got {name!r}"
        return
    try:
        find_definition(code, name)
    except CodeError as error:
        yield f"{place}: {error}"
