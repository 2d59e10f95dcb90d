"""All stacks of a mesh and their order: state, queues, gateway, functions. Nothing depends on alarms.

Most resources refer to each other by computed names, not by exports.
"""

from collections.abc import Iterable, Iterator

from aws_cdk import App, CfnOutput, CfnWaitConditionHandle, DefaultStackSynthesizer, RemovalPolicy, Stack, Tags
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya import registry
from asya.manifest import Queues, Schedule
from asya.protocol import names
from asya_infra.constructs.actors import ActorQueue, heavy_actor, light_actor, refuse_without_tls, system_actor
from asya_infra.constructs.crew import (
    PauseNotifications,
    allow_schedule,
    clock,
    crew,
    result_index_schedule,
)
from asya_infra.constructs.gateway.gateway import (
    Gateway,
    GatewayAddress,
    PushNotifications,
    report_queues,
    role_listing,
)
from asya_infra.constructs.mesh_function import MeshFunction, add_crew_logs, add_sweep, declared, mesh_layer
from asya_infra.constructs.observability.alarms import Alarm, add_alarm, alarm_actions
from asya_infra.constructs.observability.dashboards import actor_page, overview
from asya_infra.constructs.observability.mesh_alarms import mesh_alarms
from asya_infra.constructs.roles import ListedRoles
from asya_infra.constructs.spark import Spark, application, rule_arns
from asya_infra.constructs.storage import MeshStorage, Table
from asya_infra.constructs.triggers import needs_queue_first, restrict_senders, triggers
from asya_infra.constructs.undelivered import UndeliveredQueue
from asya_infra.contracts.mesh_contracts import ACTOR, actor_records
from asya_infra.mesh import Mesh
from asya_infra.permissions.groups import heavy_actors
from asya_infra.placement import CREW_SHARD, functions_part, queues_part, shard_of
from asya_infra.resource_settings import actor_queue, system_queues


class MeshStack(Stack):
    """A stack of a mesh.

    Its assets have the prefix of the mesh, so that job roles may be granted all of them: a deployment does not remove
    the permission of running jobs to read the code that they were started with.
    """

    def __init__(self, scope: Construct, mesh: Mesh, part: str) -> None:
        """Add the stack.

        Args:
            scope: the app.
            mesh: the mesh.
            part: the last part of the stack's name, such as `state` or `queues-3`.
        """
        super().__init__(
            scope,
            names.stack_name(mesh.namespace, part),
            env=mesh.environment,
            # Indentation doubles a template, and CloudFormation limits its bytes.
            suppress_template_indentation=True,
            synthesizer=DefaultStackSynthesizer(
                qualifier=mesh.file.bootstrap_qualifier, bucket_prefix=mesh.asset_prefix
            ),
            # CloudFormation gives a stack's tags to all of its resources. The tags of the mesh file, which may change, are on the
            # resources only, because some resources refuse changes.
            tags={"asya:namespace": mesh.namespace},
        )
        boundary = mesh.addresses.boundary_arn(mesh.file.permissions_boundary)
        if boundary is not None:
            policy = iam.ManagedPolicy.from_managed_policy_arn(self, "PermissionsBoundary", boundary)
            iam.PermissionsBoundary.of(self).apply(policy)


# `keep` still removes what a failed first deployment has created, which would block the second one.
_REMOVAL = {"keep": RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE, "delete": RemovalPolicy.DESTROY}


def _is_protected(mesh: Mesh) -> bool:
    """Whether CloudFormation refuses to delete the stacks with state; `asya destroy` asks first, and lifts it."""
    return mesh.file.storage.removal == "keep" and mesh.options.layer_target == "lambda"


class StateStack(MeshStack):
    """Tables and the bucket.

    Attributes:
        task_changes: the ARN of the stream of the tasks table. It is always exported: CloudFormation cannot remove an
            export while another stack imports it.
    """

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, mesh, "state")
        self.termination_protection = _is_protected(mesh)
        removal = _REMOVAL[mesh.file.storage.removal]
        declared = registry.of(mesh.table).tables
        tables = {name: Table(self, mesh, table, removal) for name, table in declared.items()}
        self.task_changes = self.export_value(tables["tasks"].changes)
        MeshStorage(self, mesh, removal)
        CfnOutput(self, "DataUri", value=mesh.addresses.data.uri)
        CfnOutput(self, "ResultsUri", value=mesh.addresses.results.uri)
        CfnOutput(self, "TasksTable", value=names.table_name(mesh.namespace, "tasks"))


class QueuesStack(MeshStack):
    """A queue and a dead-letter queue for each of these actors. The crew's shard also has the mesh's own queues."""

    def __init__(self, scope: Construct, mesh: Mesh, shard: int, actors: Iterable[str]) -> None:
        super().__init__(scope, mesh, queues_part(shard))
        self.termination_protection = _is_protected(mesh)
        queues = [self._actor(mesh, name) for name in actors]
        if shard == CREW_SHARD:
            self._crew(mesh)
        elif not queues:
            # A template needs a resource.
            CfnWaitConditionHandle(self, "NoActors")
        refuse_without_tls(self)

    def _actor(self, mesh: Mesh, name: str) -> ActorQueue:
        return ActorQueue(self, mesh, name, actor_queue(name, mesh.table))

    def _crew(self, mesh: Mesh) -> None:
        crew = {name: self._actor(mesh, name) for name in registry.crew_of(mesh.table)}
        UndeliveredQueue(self, mesh)
        if names.INDEX in crew:
            allow_schedule(crew[names.INDEX], mesh.addresses)
        queues = {name: ActorQueue(self, mesh, name, settings) for name, settings in system_queues(mesh.table).items()}
        if names.TRIGGERS in queues:
            restrict_senders(queues[names.TRIGGERS].queue, mesh)
        if names.COMPLETION in queues:
            completion = queues[names.COMPLETION]
            completion.queue.add_to_resource_policy(
                iam.PolicyStatement(
                    actions=["sqs:SendMessage"],
                    principals=[iam.ServicePrincipal("events.amazonaws.com")],
                    resources=[completion.queue.queue_arn],
                    conditions={"ArnEquals": {"aws:SourceArn": rule_arns(mesh)}},
                )
            )


class GatewayStack(MeshStack):
    """The gateway.

    Attributes:
        address: the API that the mesh's functions report to.
    """

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, mesh, "gateway")
        add_crew_logs(self, mesh)
        layer = mesh_layer(self, mesh)
        role_listing(self, mesh, layer)
        gateway = Gateway(self, mesh, layer)
        self.address = gateway.address
        CfnOutput(self, "GatewayUrl", value=self.address.url)
        CfnOutput(self, "GatewayApiId", value=gateway.api_id)
        if mesh.table.webhooks:
            # The name of a trigger follows.
            CfnOutput(self, "HookUrl", value=f"{self.address.url}/hooks/")
        if gateway.live is not None:
            CfnOutput(self, "StreamUrl", value=gateway.live.url)
        if gateway.token_api is not None:
            CfnOutput(self, "JwtGatewayUrl", value=gateway.token_api.api_endpoint)
            CfnOutput(self, "JwtGatewayApiId", value=gateway.token_api.api_id)


class SparkStack(MeshStack):
    """The mesh's own application, and the SSM parameter with its id.

    EMR Serverless refuses to change an application that is started, even its tags. In a stack of its own such a change
    fails alone, and no tag of CloudFormation changes it: `asya deploy` puts the tags of the parameter on it.
    """

    def __init__(self, scope: App, mesh: Mesh) -> None:
        super().__init__(scope, mesh, "spark")
        resource = application(self, mesh)
        for key in mesh.tags:
            Tags.of(resource).remove(key)


class FunctionsStack(MeshStack):
    """A function for each of these actors. The stack of the crew's shard also has the mesh's own functions."""

    def __init__(
        self,
        scope: Construct,
        mesh: Mesh,
        gateway: GatewayAddress,
        shard: int,
        actors: Iterable[str],
        *,
        task_changes: str,
    ) -> None:
        super().__init__(scope, mesh, functions_part(shard))
        shard_actors = list(actors)
        if not shard_actors and shard != CREW_SHARD:
            # A template needs a resource.
            CfnWaitConditionHandle(self, "NoActors")
            return
        layer = mesh_layer(self, mesh)
        records = actor_records(mesh.contracts, shard_actors) if mesh.records_contracts else {}
        for name in shard_actors:
            function = _add_actor(self, mesh, layer, gateway, name)
            if name in records:
                function.record(ACTOR, records[name])
        if shard == CREW_SHARD:
            crew(self, mesh, layer, gateway)
            clock(self, mesh, layer, gateway)
            PauseNotifications(self, mesh)
            if mesh.table.tools:
                PushNotifications(self, mesh, layer, task_changes)
            report_queues(self, mesh, layer, gateway)
            own_functions(self, mesh, layer, gateway)
            if mesh.table.triggers:
                triggers(self, mesh, layer, gateway)
            if heavy_actors(mesh.table):
                Spark(self, mesh, layer, gateway)
            for name in registry.crew_of(mesh.table):
                if mesh.table.actors[name].kind != "crew":
                    _add_actor(self, mesh, layer, gateway, name)
            if names.INDEX in mesh.table.actors:
                result_index_schedule(self, mesh)


def _add_actor(
    scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress, name: str
) -> MeshFunction:
    """Add the function of an actor, as its kind declares it."""
    kind = mesh.table.actors[name].kind
    if kind == "spark":
        return heavy_actor(scope, mesh, layer, gateway, name)
    has_handler = registry.of(mesh.table).actor_functions[kind].queues is None
    return (light_actor if has_handler else system_actor)(scope, mesh, layer, gateway, name)


class AlarmsStack(MeshStack):
    """The alarms of the mesh and the topics that they tell."""

    def __init__(self, scope: Construct, mesh: Mesh, alarms: Iterable[Alarm]) -> None:
        super().__init__(scope, mesh, "alarms")
        actions = alarm_actions(self, mesh)
        for alarm in alarms:
            add_alarm(self, mesh.namespace, alarm, actions[alarm.severity])


class DashboardsStack(MeshStack):
    """The dashboards: an overview, and one page for any actor."""

    def __init__(self, scope: Construct, mesh: Mesh) -> None:
        super().__init__(scope, mesh, "dashboards")
        # Dashboards are global in an account, so their names have the region.
        name = f"asya-{mesh.namespace}-{mesh.addresses.region}"
        for construct_id, dashboard_name, body in (
            ("Overview", name, overview(mesh)),
            ("Actor", f"{name}-actor", actor_page(mesh)),
        ):
            cloudwatch.CfnDashboard(
                self, construct_id, dashboard_name=dashboard_name, dashboard_body=self.to_json_string(body)
            )


def add_stacks(app: App, mesh: Mesh) -> None:
    """Add the stacks of a mesh: state and queues first, then the gateway, then the functions.

    A shard without actors has its stacks too. Otherwise the stacks of a shard that has lost its last actor would stay deployed:
    their functions would consume with an old actor table and block the deletion of the gateway.
    """
    shards = _actors_by_shard(mesh)
    spark = SparkStack(app, mesh) if heavy_actors(mesh.table) and not mesh.existing_application else None
    state = StateStack(app, mesh)
    gateway = GatewayStack(app, mesh)
    gateway.add_stack_dependency(state)
    observability = [*_observability(app, mesh)]
    stacks: dict[int, FunctionsStack] = {}
    queue_stacks = {shard: QueuesStack(app, mesh, shard, actors) for shard, actors in sorted(shards.items())}
    if needs_queue_first(mesh):
        state.add_stack_dependency(queue_stacks[CREW_SHARD])
    for shard, actors in sorted(shards.items()):
        functions = FunctionsStack(app, mesh, gateway.address, shard, actors, task_changes=state.task_changes)
        stacks[shard] = functions
        # The functions of every shard report to queues of the crew's shard.
        for dependency in dict.fromkeys((state, queue_stacks[shard], queue_stacks[CREW_SHARD], gateway)):
            functions.add_stack_dependency(dependency)
        if shard == CREW_SHARD:
            # Sweeps run before the alarms on their heartbeats exist.
            for each in observability:
                each.add_stack_dependency(functions)
        if spark is not None and shard == CREW_SHARD:
            functions.add_stack_dependency(spark)
    for shard in shards:
        # The dispatcher names the job roles of heavy actors, so they exist before it is deployed. And the list of roles is
        # complete with the crew's stack.
        if shard != CREW_SHARD:
            stacks[CREW_SHARD].add_stack_dependency(stacks[shard])
    ListedRoles.of(stacks[CREW_SHARD], mesh).complete()
    for key, value in mesh.tags.items():
        Tags.of(app).add(key, value)


def _observability(app: App, mesh: Mesh) -> Iterator[MeshStack]:
    """Yield the stacks that the mesh file asks for (`assembly.OPTIONAL_STACKS`)."""
    if mesh.file.telemetry.dashboards:
        yield DashboardsStack(app, mesh)
    # Alarms need metric math, which the local cloud refuses; no alarm has data there.
    if mesh.options.layer_target == "lambda" and (alarms := mesh_alarms(mesh)):
        yield AlarmsStack(app, mesh, alarms)


def _actors_by_shard(mesh: Mesh) -> dict[int, list[str]]:
    shards: dict[int, list[str]] = {shard: [] for shard in range(mesh.file.shards)}
    for name in sorted(mesh.file.actors):
        # Crew actors stay in the crew's shard even if the mesh file redefines them: queues never move.
        if not names.is_reserved(name):
            shards[shard_of(name, mesh.file.shards)].append(name)
    return shards


def own_functions(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
    """Add the functions, each with its queue or its schedule."""
    for each in registry.own_functions(mesh.table):
        code, environment = mesh.code_of(each), {"ASYA_GATEWAY_URL": gateway.url}
        if isinstance(each.called_by, Schedule):
            sweep = Construct(scope, f"Sweep-{each.name}")
            add_sweep(sweep, mesh, layer, declared(mesh, each.name, code=code, environment=environment))
        elif isinstance(each.called_by, Queues):
            settings = declared(mesh, each.name, code=code, environment=environment)
            MeshFunction(scope, mesh, layer, settings).add_declared_event_sources()
