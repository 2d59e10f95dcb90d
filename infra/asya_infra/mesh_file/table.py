"""Makes the actor table (`mesh.json`), which every function reads, from the mesh file: also which actors each one may send to."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from asya import registry
from asya.protocol import mesh_table as table
from asya.protocol import names
from asya.protocol.pause import Pause
from asya.protocol.triggers import Trigger
from asya_infra import timings
from asya_infra.mesh_file import result_index
from asya_infra.mesh_file.actor_model import AccessEntry, ActorSection, SparkSection, WorkerSection
from asya_infra.mesh_file.crew import crew_of
from asya_infra.mesh_file.load import LoadedMesh
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.result_index import compacts_index, has_index
from asya_infra.mesh_file.sections import plain, read_section, shared_fields
from asya_infra.mesh_file.spark import max_concurrent_runs, max_executors, sized_sections, spark_conf
from asya_infra.mesh_file.user_code import detect_shape, returns

ALL_ACTORS: frozenset[str] = frozenset({"*"})


def send_targets(mesh: MeshFile, actor: str) -> frozenset[str]:
    """Return the actors that an actor may send to, beside itself and the crew; `ALL_ACTORS` stands for every actor.

    The key `can_send_to` declares them. By default they follow from the routes of tools and policies. Three kinds of actor may
    send to every actor by default: an actor in no tool's route, which serves routes made at run time; an actor before a fan-in
    actor, whose code decides the route of the slices; and a fan-in actor, which continues the route of any origin.
    """
    if actor == names.INDEX:
        return frozenset()
    section = mesh.actors.get(actor)
    if section is not None and section.can_send_to is not None:
        return ALL_ACTORS if section.can_send_to == ("*",) else frozenset(section.can_send_to)
    fan_ins = {names.FAN_IN, *(name for name, other in mesh.actors.items() if other.kind == "fan_in")}
    tool_routes = [tool.route or (name,) for name, tool in mesh.tools.items()]
    if section is None or actor in fan_ins or not any(actor in route for route in tool_routes):
        return ALL_ACTORS
    if fan_ins & set(_successors(actor, tool_routes)):
        return ALL_ACTORS
    then_routes = [
        policy.then_route or () for section in mesh.actors.values() for policy in section.resiliency.policies.values()
    ]
    own_then = [policy.then_route[0] for policy in section.resiliency.policies.values() if policy.then_route]
    # Any actor may be the last one before a fan-in actor.
    return frozenset([*own_then, *_successors(actor, [*tool_routes, *then_routes]), *(fan_ins - {names.FAN_IN})])


def _successors(actor: str, routes: Iterable[Sequence[str]]) -> Iterable[str]:
    return [after for route in routes for before, after in pairwise(route) if before == actor]


def leads_to(mesh: MeshFile, actor: str) -> tuple[str, ...]:
    """Return the actors that routes of the mesh file reach from an actor through the crew, sorted.

    `can_send_to` need not name them, because the mesh file has written the route. The crew alone leads there.
    """
    own_then = [
        policy.then_route for section in _sections(mesh, actor) for policy in section.resiliency.policies.values()
    ]
    routes = [
        *((tool.route or (name,)) for name, tool in mesh.tools.items()),
        *(trigger.route for trigger in mesh.triggers.values()),
        *((actor, *route) for route in own_then if route),
        *(
            policy.then_route or ()
            for section in mesh.actors.values()
            for policy in section.resiliency.policies.values()
        ),
    ]
    found = (
        _behind_the_crew(mesh, route[place + 1 :]) for route in routes for place, at in enumerate(route) if at == actor
    )
    return tuple(sorted({target for target in found if target is not None}))


def _sections(mesh: MeshFile, actor: str) -> Iterable[ActorSection]:
    section = mesh.actors.get(actor)
    return [] if section is None else [section]


def _behind_the_crew(mesh: MeshFile, ahead: Sequence[str]) -> str | None:
    """Return the first actor ahead that does not lead on for others. A handler may put its fan-in actor before it."""
    return next(
        (
            name
            for name in ahead
            if name not in (names.CHECKPOINT, names.RESUME) and section_of(mesh, name).kind != "fan_in"
        ),
        None,
    )


_ACCESS_KINDS: tuple[Literal["bucket", "table", "secret", "database"], ...] = ("bucket", "table", "secret", "database")


def to_table(loaded: LoadedMesh, *, existing_application: str | None = None) -> table.MeshTable:
    """Return the actor table of a mesh, including its crew.

    Args:
        existing_application: the id of an existing Spark application, which overrides the mesh file.
    """
    mesh = loaded.mesh
    used = crew_of(loaded)
    crew = (
        *(name for name in registry.PRODUCT.crew_of_kinds if name in used),
        *([names.INDEX] if compacts_index(mesh) else []),
        *([names.WAIT] if _holds_retries(mesh) else []),
    )
    actors = {name: _actor(loaded, name, section_of(mesh, name)) for name in dict.fromkeys((*mesh.actors, *crew))}
    made = table.MeshTable(
        namespace=loaded.namespace,
        actors={**actors, **{name: _crew_actor(name) for name in registry.PRODUCT.crew if name in used}},
        tools={
            name: table.Tool(
                **{**shared_fields(table.ToolOptions, tool), "route": tool.route or (name,)},
                input_schema=dict(tool.json_schema),
            )
            for name, tool in mesh.tools.items()
        },
        triggers=_triggers(loaded),
        agent=mesh.agent or table.Agent(),
        sink=_sink(mesh),
        gateway=table.Gateway(
            **shared_fields(table.GatewayOptions, mesh.gateway),
            token_calls=mesh.gateway.jwt.calls if mesh.gateway.jwt is not None else (),
            tenant_claim=(mesh.gateway.jwt.tenant if mesh.gateway.jwt is not None else None) or UNSET,
        ),
        spark=_application(mesh, is_existing=bool(existing_application or mesh.spark.application.id)),
        retention=_retention(mesh),
        **shared_fields(table.MeshLimits, mesh),
        xray_share=mesh.telemetry.sample if mesh.telemetry.xray else None,
        capabilities=dict(loaded.capabilities.digests) or UNSET,
    )
    calls = loaded.capabilities.calls_of({each.name for each in registry.functions_of(made)})
    return replace(made, own_calls=calls) if calls.calls else made


def section_of(mesh: MeshFile, name: str) -> ActorSection:
    """Return the settings of an actor from the mesh file, or the default settings of a crew actor."""
    if name == names.INDEX:
        return result_index.SECTION
    if name == names.WAIT:
        return ActorSection(kind="wait")
    return mesh.actors.get(name) or read_section(ActorSection, {"kind": registry.PRODUCT.crew_of_kinds[name]})


def _holds_retries(mesh: MeshFile) -> bool:
    """Whether a retry policy asks for a delay that x-wait holds."""
    actors = (table.Actor(kind="handler", resiliency=actor.resiliency) for actor in mesh.actors.values())
    return any(actor.retries_after_days for actor in actors)


def _crew_actor(name: str) -> table.Actor:
    receives = timings.END_MAX_RECEIVES if name in names.END_ACTORS else timings.MAX_RECEIVES
    return table.Actor(kind="crew", max_receives=receives)


def _actor(loaded: LoadedMesh, name: str, actor: ActorSection) -> table.Actor:
    targets = send_targets(loaded.mesh, name)
    kind = actor.kind or ("spark" if actor.spark else "handler")
    return table.Actor(
        **shared_fields(table.ActorOptions, actor),
        kind=kind,
        handler=actor.handler,
        spark=_spark(loaded, actor, actor.spark) if actor.spark else None,
        fan_in=actor.fan_in or table.FanIn() if actor.kind == "fan_in" else None,
        pause=pause_of(actor.pause or Pause()) if actor.kind == "pause" else None,
        wait=actor.wait if actor.kind == "wait" else None,
        can_send_to=None if targets is ALL_ACTORS else tuple(sorted(targets)),
        leads_to=() if targets is ALL_ACTORS else leads_to(loaded.mesh, name),
        gives_one_frame=_gives_one_frame(loaded, actor),
        secrets=dict(actor.secrets),
        access=tuple(map(_access, actor.access)),
        options=_options(loaded, actor) or UNSET,
        own_code=kind not in registry.PRODUCT.actor_functions or UNSET,
    )


def _options(loaded: LoadedMesh, actor: ActorSection) -> dict[str, object]:
    """Return the options that capabilities declare, as JSON."""
    written = [key for key in loaded.capabilities.registry.options if key in actor.written]
    return {key: msgspec.to_builtins(getattr(actor, key)) for key in written}


def _access(entry: AccessEntry) -> table.Access:
    if entry.statement is not None:
        return table.Access(kind="statement", statement=plain(entry.statement))
    kind, name = next((kind, name) for kind in _ACCESS_KINDS if (name := getattr(entry, kind)) is not None)
    return table.Access(kind=kind, name=name, location=entry.location, read=entry.read, write=entry.write)


def _gives_one_frame(loaded: LoadedMesh, actor: ActorSection) -> bool:
    return actor.handler is not None and not actor.fan_out_lists and returns(loaded.code_folder, actor.handler)


def pause_of(section: Pause) -> Pause:
    """Return a pause for the table, which has no notifications."""
    return Pause(**shared_fields(Pause, section))


def _spark(loaded: LoadedMesh, actor: ActorSection, spark: SparkSection) -> table.SparkJob:
    return table.SparkJob(
        **shared_fields(table.JobOptions, spark),
        driver=_worker(spark.driver),
        executor=_worker(spark.executors),
        min_executors=spark.executors.min,
        max_executors=max_executors(spark, loaded.mesh.spark.application),
        conf=spark_conf(spark),
        env=dict(actor.env),
        access=access_digest(actor) if spark.linger else "",
        shape="payload" if actor is result_index.SECTION else detect_shape(loaded.jobs_folder, spark.job),
        sizes=tuple(_size(loaded, spark, name, job) for name, job in sized_sections(spark) if name) or UNSET,
        size_by=UNSET if spark.size_by is None else spark.size_by,
    )


def _size(loaded: LoadedMesh, spark: SparkSection, name: str, job: SparkSection) -> table.JobSize:
    return table.JobSize(
        name=name,
        up_to=spark.sizes[name].up_to,
        driver=_worker(job.driver),
        executor=_worker(job.executors),
        min_executors=job.executors.min,
        max_executors=max_executors(job, loaded.mesh.spark.application),
        conf=spark_conf(job),
    )


def access_digest(actor: ActorSection) -> str:
    """Return a digest of the access of an actor, which a job run has from its start on."""
    entries = json.dumps([plain(entry) for entry in actor.access], sort_keys=True)
    return hashlib.sha256(entries.encode()).hexdigest()[:16]


def _worker(worker: WorkerSection) -> table.WorkerSize:
    return table.WorkerSize(
        cores=worker.cores,
        memory_mb=worker.memory,
        disk_gb=None if worker.disk is None else -(-worker.disk // 1024),
    )


def _sink(mesh: MeshFile) -> table.Sink:
    sink = mesh.sink
    succeeded, failed = sink.folders
    return table.Sink(
        **shared_fields(table.SinkOptions, sink),
        succeeded_prefix=succeeded,
        failed_prefix=failed,
        index=has_index(mesh),
    )


def _retention(mesh: MeshFile) -> table.Retention:
    kept = table.Retention(**shared_fields(table.Retention, mesh.storage.retention))
    # Only the mesh's own bucket has the lifecycle of results.
    return replace(kept, results=None) if mesh.storage.results_bucket or mesh.sink.endpoint else kept


def _triggers(loaded: LoadedMesh) -> dict[str, Trigger]:
    """Return the triggers by name. In a stage they are off, unless `run_triggers` says so (`protocol §16`)."""
    mesh = loaded.mesh
    is_stage = loaded.namespace != mesh.namespace
    runs = not is_stage if mesh.run_triggers is None else mesh.run_triggers
    found = {name: Trigger(**shared_fields(Trigger, section)) for name, section in mesh.triggers.items()}
    return found if runs else {name: replace(trigger, enabled=False) for name, trigger in found.items()}


def _application(mesh: MeshFile, *, is_existing: bool) -> table.SparkApplication:
    has_priorities = any(actor.spark is not None and actor.spark.priority for actor in mesh.actors.values())
    return table.SparkApplication(
        start_per_second=mesh.spark.start_rate.per_second,
        start_burst=mesh.spark.start_rate.burst,
        # The mesh's own application queues the runs beyond its limit, but it starts them in the order of their arrival.
        max_concurrent_runs=max_concurrent_runs(mesh) if is_existing or has_priorities else None,
        release=None if is_existing else mesh.spark.application.release,
    )
