"""The manifests: each function is declared once, and what calls it fits its entry point."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from dataclasses import replace

import pytest
from msgspec import structs

from asya import registry
from asya.gateway.call_table import calls_of
from asya.gateway.http.entry_point import HttpEntryPoint
from asya.manifest import ActorFunction, Clock, Function, Queues, Requests, TableChanges
from asya.predicates import always
from asya.protocol import names
from asya.protocol.mesh_table import Actor
from asya.protocol.triggers import Trigger, Webhook
from asya.senders.statements import Speaker, speaker_of
from asya.sidecar.lambdas.entry_point import ChangesEntryPoint, QueueEntryPoint, ScheduleEntryPoint
from tests.doubles.envelopes import mesh

DECLARED = [
    *registry.PRODUCT.functions.values(),
    *registry.PRODUCT.steps.values(),
    *registry.PRODUCT.actor_functions.values(),
]
MADE_BY_CONSTRUCTS = {
    names.GATEWAY_LIVE: "an HTTP server in an image layer, and the actor table does not say whether the mesh has it",
    names.INDEX: "an actor, whose kind is `spark`",
}


@pytest.mark.parametrize("function", DECLARED, ids=lambda each: getattr(each, "name", None) or each.kind)
def test_the_entry_point_is_what_its_caller_calls(function: Function | ActorFunction) -> None:
    entry_point = pkgutil.resolve_name(function.entry_point)
    if function.queues is not None or isinstance(function, ActorFunction):
        assert isinstance(entry_point, QueueEntryPoint)
    elif isinstance(function.called_by, Clock) and function.name != names.CLOCK:
        assert isinstance(entry_point, ScheduleEntryPoint)
    elif isinstance(function.called_by, Requests):
        assert isinstance(entry_point, HttpEntryPoint)
    elif isinstance(function.called_by, TableChanges):
        assert isinstance(entry_point, ChangesEntryPoint)
    else:
        assert callable(entry_point)


def test_every_system_function_is_declared() -> None:
    crew = {names.SINK, names.SUMP, names.CHECKPOINT, names.RESUME}
    assert registry.PRODUCT.functions.keys() == (set(names.SYSTEM_FUNCTIONS) - MADE_BY_CONSTRUCTS.keys()) | crew


def test_functions_know_the_steps_of_the_clock_in_their_order() -> None:
    """`names.STEPS` tells whose role and log group a step has, and functions import no manifest."""
    assert tuple(registry.PRODUCT.steps) == names.STEPS


@pytest.mark.rule("11.clock.rights")
def test_the_clock_has_the_time_and_the_needs_of_its_steps_and_runs_no_code_of_users() -> None:
    clock, steps = registry.PRODUCT.functions[names.CLOCK], registry.PRODUCT.steps.values()
    assert sum(step.timeout for step in steps) < clock.timeout <= 900
    assert [replace(each, when=always) for each in clock.needs] == [
        replace(each, when=always) for step in steps for each in step.needs
    ]
    assert all(step.is_in_layer for step in steps)


@pytest.mark.rule("11.clock.rights")
def test_a_mesh_needs_of_a_step_only_what_it_has() -> None:
    table = mesh()
    assert [step.name for step in registry.steps_of(table)] == [names.TASK_SWEEP, names.DLQ]
    needed = [each for each in registry.PRODUCT.functions[names.CLOCK].needs if each.when(table, names.CLOCK)]
    declared = [need for step in registry.steps_of(table) for need in step.needs if need.when(table, step.name)]
    assert [replace(each, when=always) for each in needed] == [replace(each, when=always) for each in declared]


@pytest.mark.rule("1.authority")
def test_actors_without_code_of_users_continue_the_routes_of_others() -> None:
    """A kind that continued none would lend its rights to every actor that may send to it."""
    assert Actor(kind="crew").continues
    for kind in registry.PRODUCT.actor_functions:
        continues = kind not in (*registry.PRODUCT.handler_kinds, "spark")
        assert Actor(kind=kind).continues == continues
        heard_as_code = speaker_of(mesh({"a": Actor(kind=kind)}), "a") in (Speaker.CODE, Speaker.HEAVY)
        assert heard_as_code != continues


def test_no_two_functions_take_from_one_queue() -> None:
    every = [
        name
        for each in registry.PRODUCT.functions.values()
        if each.queues
        for name in each.queues.names or (each.name,)
    ]
    assert len(every) == len(set(every))


def test_a_mesh_has_the_functions_that_it_needs() -> None:
    small = mesh()
    assert registry.queues_of(small).keys() == set(names.REPORT_QUEUES)
    assert names.RECONCILE not in registry.sweeps_of(small)
    assert all(isinstance(queues, Queues) for _, queues in registry.queues_of(small).values())


@pytest.mark.parametrize("webhook", [None, Webhook(secret="s", signature="github")])
def test_a_mesh_has_the_functions_of_its_calls(webhook: Webhook | None) -> None:
    """The local modes start the functions of the registry, so each call has one there too."""
    triggers = {"pushed": Trigger(route=("a",), webhook=webhook)} if webhook is not None else {}
    table = structs.replace(mesh(), triggers=triggers)
    answering = {each.name for each in registry.functions_of(table) if isinstance(each.called_by, Requests)}
    assert {call.function for call in calls_of(table)} == answering


@pytest.mark.parametrize(
    "entry_point",
    sorted({each.entry_point.rpartition(".")[0] for each in DECLARED}),
)
@pytest.mark.slow
def test_no_function_imports_a_manifest(entry_point: str) -> None:
    declarations = (".manifest", ".registry", ".needs", ".predicates", ".monitoring")
    ours = f"name.startswith('asya.') and name.endswith({declarations})"
    code = f"import sys, {entry_point}; print([name for name in sys.modules if {ours}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
