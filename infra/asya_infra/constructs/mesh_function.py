"""A function of the mesh with its layer, tracing, role, log group, event source and EventBridge rules."""

from dataclasses import dataclass, field
from typing import Any, cast

from aws_cdk import Duration, RemovalPolicy, Stack, Tags
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from asya import registry
from asya.manifest import Queues, Schedule
from asya.protocol import names
from asya_infra.acknowledgements import acknowledge
from asya_infra.build.functions import build_layer
from asya_infra.constructs.encryption import customer_key
from asya_infra.constructs.roles import ListedRoles, mesh_role
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.actor_model import PollersSection
from asya_infra.permissions.encryption import decrypt_variables, use_key, use_keys_of_buckets
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.needs import Place, function_grants, network_interfaces


def trace_environment(mesh: Mesh, name: str) -> dict[str, str]:
    """Return the environment variables for spans; none for a function that records none."""
    telemetry = mesh.file.telemetry
    if not _records_spans(mesh, name):
        return {}
    base = telemetry.endpoint or f"https://xray.{mesh.addresses.region}.{mesh.addresses.url_suffix}"
    return {"ASYA_TRACES_ENDPOINT": f"{base.rstrip('/')}/v1/traces", "ASYA_TRACES_SHARE": f"{telemetry.sample:g}"}


def trace_grants(mesh: Mesh, name: str) -> list[Grant]:
    """Return the permissions for spans: those of X-Ray, if the function sends spans there."""
    if not (mesh.file.telemetry.xray and _records_spans(mesh, name)):
        return []
    return [Grant(("xray:PutTraceSegments",), ("*",), "X-Ray has no resources for traces.")]


def trace_layers(scope: Construct, mesh: Mesh, name: str) -> list[lambda_.ILayerVersion]:
    """Return the layers of the collector, if the mesh file names any. The local cloud cannot read layers of AWS."""
    if mesh.options.layer_target == "local" or not _records_spans(mesh, name):
        return []
    return [
        lambda_.LayerVersion.from_layer_version_arn(scope, f"Collector{number}", layer)
        for number, layer in enumerate(mesh.file.telemetry.collector)
    ]


def _records_spans(mesh: Mesh, name: str) -> bool:
    # Nothing on the local cloud may call AWS.
    is_reachable = not (mesh.file.telemetry.xray and mesh.options.layer_target == "local")
    if not (mesh.file.telemetry.is_on and is_reachable):
        return False
    declaration = registry.of(mesh.table).functions.get(name)
    if declaration is None:
        return name in mesh.file.actors or name in registry.of(mesh.table).crew_of_kinds
    return declaration.traces


def mesh_layer(scope: Construct, mesh: Mesh) -> lambda_.LayerVersion:
    """Add the layer version for the functions of a stack."""
    on_arm = mesh.options.functions_on_arm
    options, traces = mesh.options, mesh.file.telemetry.is_on
    return lambda_.LayerVersion(
        scope,
        "Layer",
        code=lambda_.Code.from_asset(str(build_layer(options.build_folder, options.packages_target, traces=traces))),
        compatible_runtimes=[lambda_.Runtime.PYTHON_3_13],
        compatible_architectures=[lambda_.Architecture.ARM_64 if on_arm else lambda_.Architecture.X86_64],
        description=f"asya, for the mesh {mesh.namespace}",
        removal_policy=RemovalPolicy.DESTROY,
    )


@dataclass(frozen=True, kw_only=True)
class FunctionSettings:
    """The settings of one function.

    Attributes:
        name: the name of an actor or of a system function.
        handler: the entry point in the layer.
        code: the function's own files.
        grants: the permissions.
        timeout: seconds.
        memory: megabytes.
        environment: variables beside those of every function.
        in_chains: whether one chain of calls may pass the function many times: on a route, or through tasks of a trigger
            whose ends start the next ones. Lambda stops a function that calls itself about 16 times in a chain, unless
            `RecursiveLoop` allows it. The mesh has limits of its own: `max_hops`, and what waits in a lane or a backfill.
        reserved: the reserved concurrency; None for a share of the account's concurrency.
        layers: layers beside that of the mesh.
        in_vpc: whether the function is in the VPC of the mesh file, as all user code is. The mesh's own code stays outside: it
            calls only AWS and the gateway, and the clients that push notifications go to.
    """

    name: str
    handler: str
    code: lambda_.Code
    grants: list[Grant]
    timeout: int
    memory: int = 512
    environment: dict[str, str] = field(default_factory=dict)
    in_chains: bool = False
    reserved: int | None = None
    layers: tuple[lambda_.ILayerVersion, ...] = ()
    in_vpc: bool = False


@dataclass(frozen=True, kw_only=True)
class EventSourceSettings:
    """The settings of an event source mapping.

    Attributes:
        batch_size: messages per invocation, at most.
        window: seconds that Lambda waits for a full batch.
        concurrency: the maximum of concurrent executions, or None; ignored with pollers.
        provisioned: instances that are always warm.
        pollers: pollers that Lambda keeps; None for those that it starts on demand.
    """

    batch_size: int = 10
    window: int = 0
    concurrency: int | None = 50
    provisioned: int = 0
    pollers: PollersSection | None = None

    @classmethod
    def of(cls, queues: Queues) -> "EventSourceSettings":
        """Return the settings that a manifest declares."""
        return cls(batch_size=queues.batch, window=queues.window, concurrency=queues.concurrency)


def declared(
    mesh: Mesh,
    name: str,
    *runs: str,
    code: lambda_.Code,
    application: str | None = None,
    environment: dict[str, str] | None = None,
    reserved: int | None = None,
    memory: int | None = None,
) -> FunctionSettings:
    """Return the settings of a function of the mesh's own, as its manifest declares it.

    Args:
        runs: the actors whose batches the function processes, with the needs of all of them; none if it is the actor itself.
        application: the id of the Spark application, if the function needs it.
        memory: megabytes; by default those of the manifest.
    """
    function = registry.of(mesh.table).functions[name]
    place = Place(addresses=mesh.addresses, table=mesh.table, application=application)
    return FunctionSettings(
        name=name,
        handler=function.entry_point,
        code=code,
        grants=[grant for each in runs or (name,) for grant in function_grants(each, place)],
        timeout=function.timeout,
        memory=memory or function.memory,
        environment=environment or {},
        in_chains=mesh.is_in_chains(name),
        reserved=reserved,
        in_vpc=not function.is_in_layer,
    )


_CREW_LOGS = "CrewLogs"


def add_crew_logs(stack: Stack, mesh: Mesh) -> None:
    """Add the log group of the crew to the stack that is deployed before the other functions."""
    _own_log_group(Construct(stack, _CREW_LOGS), mesh, names.SINK)


def _log_group(scope: Construct, mesh: Mesh, name: str) -> logs.ILogGroup:
    """Return the log group of a function; add it, unless the crew shares it."""
    if name not in names.CREW:
        return _own_log_group(scope, mesh, name)
    shared = Stack.of(scope).node.try_find_child(_CREW_LOGS)
    if shared is not None:
        # A function that runs before its log group exists makes Lambda create it.
        return cast("logs.ILogGroup", shared.node.find_child("Logs"))
    return logs.LogGroup.from_log_group_name(scope, "Logs", mesh.addresses.log_group_name(name))


def _own_log_group(scope: Construct, mesh: Mesh, name: str) -> logs.LogGroup:
    return logs.LogGroup(
        scope,
        "Logs",
        log_group_name=mesh.addresses.log_group_name(name),
        encryption_key=customer_key(scope, mesh),
        retention=mesh.log_retention,
        removal_policy=RemovalPolicy.DESTROY,
    )


def _without_lines_of_lambda(name: str) -> dict[str, Any]:
    """Return how a function of the crew logs: no line of Lambda's own about a call that succeeds.

    Lambda filters its lines in its JSON format only. That format would change the lines of user code.
    """
    if name not in names.CREW:
        return {}
    return {
        "logging_format": lambda_.LoggingFormat.JSON,
        "application_log_level_v2": lambda_.ApplicationLogLevel.INFO,
        "system_log_level_v2": lambda_.SystemLogLevel.WARN,
    }


class MeshFunction(Construct):
    """A Lambda function with its own name and role, and the log group of its code."""

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, settings: FunctionSettings) -> None:
        super().__init__(scope, settings.name)
        Tags.of(self).add("asya:actor", settings.name)  # for the allocation of costs
        addresses = mesh.addresses
        self._mesh, self._name = mesh, settings.name
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=names.function_name(mesh.namespace, settings.name),
            description=f"{settings.name} of the mesh {mesh.namespace}",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64 if mesh.options.functions_on_arm else lambda_.Architecture.X86_64,
            handler=settings.handler,
            code=settings.code,
            layers=[layer, *settings.layers, *trace_layers(self, mesh, settings.name)],
            role=mesh_role(self, mesh, settings.name, "lambda.amazonaws.com", _grants(mesh, settings)),
            log_group=_log_group(self, mesh, settings.name),
            **_without_lines_of_lambda(settings.name),
            timeout=Duration.seconds(settings.timeout),
            memory_size=settings.memory,
            reserved_concurrent_executions=settings.reserved,
            recursive_loop=lambda_.RecursiveLoop.ALLOW if settings.in_chains else lambda_.RecursiveLoop.TERMINATE,
            environment={
                **settings.environment,
                **trace_environment(mesh, settings.name),
                "ASYA_ACTOR": settings.name,
                "ASYA_BUCKET": addresses.bucket,
                "ASYA_DATA_URI": addresses.data.uri,
                "ASYA_RESULTS_URI": addresses.results.uri,
                "ASYA_QUEUE_URL_PREFIX": addresses.queue_url_prefix,
                "POWERTOOLS_SERVICE_NAME": settings.name,
                "POWERTOOLS_METRICS_NAMESPACE": names.METRICS_NAMESPACE,
                "LOG_LEVEL": "INFO",
            },
        )
        resource = cast("lambda_.CfnFunction", self.function.node.default_child)
        # The reference to the role implies the dependency. cfn-lint reports a redundant DependsOn.
        resource.add_deletion_override("DependsOn")
        if settings.name != names.ROLES:
            ListedRoles.of(self, mesh).add(settings.name, self.function)
        # The CDK would look up the VPC, and would grant the role more of the key.
        resource.kms_key_arn = mesh.kms_key
        if mesh.vpc is not None and settings.in_vpc:
            resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
                subnet_ids=list(mesh.vpc.subnets), security_group_ids=list(mesh.vpc.security_groups)
            )
        acknowledge(
            self.function,
            "AwsSolutions-L1",
            "Python 3.13 is a supported runtime, and the layer is built for it. An upgrade is a deliberate change.",
        )

    def add_event_source(self, feed: EventSourceSettings, queue: str | None = None) -> None:
        """Connect a queue, by default that of the same name, with partial batch failures.

        Args:
            feed: the settings.
            queue: the name of another actor or system function.
        """
        name = queue or self._name
        lambda_.EventSourceMapping(
            self,
            "Feed" if name == self._name else f"Feed-{name}",
            target=self._warm(feed.provisioned) if feed.provisioned else self.function,
            event_source_arn=self._mesh.addresses.queue_arn(name),
            batch_size=feed.batch_size,
            max_batching_window=Duration.seconds(feed.window) if feed.window else None,
            max_concurrency=None if feed.pollers else feed.concurrency,
            provisioned_poller_config=_pollers(feed.pollers),
            report_batch_item_failures=True,
        )

    def add_declared_event_sources(self) -> None:
        """Connect the queues that the manifest of the function declares."""
        queues = registry.of(self._mesh.table).functions[self._name].queues
        assert queues is not None, f"no queue calls {self._name}"
        for name in queues.names or (self._name,):
            self.add_event_source(EventSourceSettings.of(queues), name)

    def record(self, key: str, text: str) -> None:
        """Put a text into the metadata of the function, where the next deployment finds it."""
        cast("lambda_.CfnFunction", self.function.node.default_child).add_metadata(key, text)

    def _warm(self, instances: int) -> lambda_.IFunction:
        found = self.node.try_find_child("Warm")
        return (
            cast("lambda_.Alias", found)
            if found is not None
            else lambda_.Alias(
                self,
                "Warm",
                alias_name="warm",
                version=self.function.current_version,
                provisioned_concurrent_executions=instances,
            )
        )


def _grants(mesh: Mesh, settings: FunctionSettings) -> list[Grant]:
    """Return the permissions of a function with those for traces, for the key and for the network of the mesh file."""
    return [
        *settings.grants,
        *trace_grants(mesh, settings.name),
        *use_key(mesh.kms_key, settings.grants, mesh.addresses),
        *use_keys_of_buckets(settings.grants, mesh.addresses),
        *decrypt_variables(mesh.kms_key, mesh.addresses, settings.name),
        *(network_interfaces(mesh.addresses, settings.name) if mesh.vpc is not None and settings.in_vpc else []),
    ]


def _pollers(section: PollersSection | None) -> lambda_.ProvisionedPollerConfig | None:
    if section is None:
        return None
    return lambda_.ProvisionedPollerConfig(minimum_pollers=section.min, maximum_pollers=section.max)


def add_sweep(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, settings: FunctionSettings) -> None:
    """Add a function that a schedule invokes, as its manifest declares it."""
    schedule = registry.of(mesh.table).functions[settings.name].called_by
    assert isinstance(schedule, Schedule), f"no schedule calls {settings.name}"
    function = MeshFunction(scope, mesh, layer, settings).function
    if mesh.is_watched:
        function.add_environment("ASYA_HEARTBEATS", "on")
    rule = events.CfnRule(
        scope,
        "Sweep",
        name=names.resource_name(mesh.namespace, schedule.rule),
        description=f"Looks after {schedule.checks} of the mesh {mesh.namespace}",
        schedule_expression=schedule.expression,
        targets=[events.CfnRule.TargetProperty(id="sweep", arn=function.function_arn)],
    )
    lambda_.CfnPermission(
        scope,
        "SweepPermission",
        action="lambda:InvokeFunction",
        function_name=function.function_name,
        principal="events.amazonaws.com",
        source_arn=rule.attr_arn,
    )
