"""Light, heavy and system actors, and the queue of each with its dead-letter queue (`protocol §4`)."""

import math
from typing import cast

from aws_cdk import Duration, Stack, Tags
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from asya import registry
from asya.protocol import names
from asya_infra import timings
from asya_infra.acknowledgements import acknowledge_wildcards
from asya_infra.constructs.encryption import customer_key
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.constructs.mesh_function import EventSourceSettings, FunctionSettings, MeshFunction
from asya_infra.constructs.spark import job_role
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.legacy.variables import handler_variables
from asya_infra.mesh_file.table import section_of
from asya_infra.permissions.access import access_grants
from asya_infra.permissions.grant import document
from asya_infra.permissions.job_runs import run_access
from asya_infra.permissions.needs import Place, function_grants, secret_grants
from asya_infra.resource_settings import QueueSettings


class ActorQueue(Construct):
    """A queue and its dead-letter queue. `refuse_without_tls` gives them their policy."""

    def __init__(self, scope: Construct, mesh: Mesh, actor: str, settings: QueueSettings) -> None:
        """Add the queues.

        Args:
            scope: the stack of the actor's shard.
            mesh: the mesh.
            actor: the name of an actor or a system function.
            settings: the settings of the queue.
        """
        super().__init__(scope, actor)
        Tags.of(self).add("asya:actor", actor)  # for the allocation of costs
        namespace, key = mesh.namespace, customer_key(self, mesh)
        encryption = sqs.QueueEncryption.SQS_MANAGED if key is None else sqs.QueueEncryption.KMS
        data_key_reuse = None if key is None else Duration.minutes(timings.DATA_KEY_REUSE_MINUTES)
        dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=names.dlq_name(namespace, actor),
            encryption=encryption,
            encryption_master_key=key,
            data_key_reuse=data_key_reuse,
            retention_period=Duration.days(timings.DLQ_RETENTION_DAYS),
        )
        _accept_only_from(dead_letters, names.queue_name(namespace, actor))
        self.queue = sqs.Queue(
            self,
            "Queue",
            queue_name=names.queue_name(namespace, actor),
            encryption=encryption,
            encryption_master_key=key,
            data_key_reuse=data_key_reuse,
            retention_period=Duration.days(settings.retention_days),
            visibility_timeout=Duration.seconds(settings.visibility_timeout),
            dead_letter_queue=sqs.DeadLetterQueue(queue=dead_letters, max_receive_count=settings.max_receives),
        )


def refuse_without_tls(stack: Stack) -> None:
    """Let each queue of a stack refuse requests without TLS. Call it when the queues and their own policies exist.

    Queues that nobody else may send to share one policy. Its statement is about the queue that has it: AWS gives one policy with
    the resource `*` to two queues.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/quickref-iam.html#scenario-sqs-policy
    """
    sharing: list[sqs.Queue] = []
    for queue in [each for each in stack.node.find_all() if isinstance(each, sqs.Queue)]:
        if queue.node.try_find_child("Policy") is None:
            sharing.append(queue)
        else:
            queue.add_to_resource_policy(_without_tls(queue.queue_arn))
    if sharing:
        policy = sqs.QueuePolicy(stack, "WithoutTls", queues=sharing)
        policy.document.add_statements(_without_tls("*"))


def _without_tls(resource: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        effect=iam.Effect.DENY,
        actions=["sqs:*"],
        principals=[iam.AnyPrincipal()],
        resources=[resource],
        conditions={"Bool": {"aws:SecureTransport": "false"}},
    )


def _accept_only_from(dead_letters: sqs.Queue, queue_name: str) -> None:
    """Allow one queue to use the dead-letter queue. The ARN is computed, because the two queues refer to each other."""
    source = Stack.of(dead_letters).format_arn(service="sqs", resource=queue_name)
    cast("sqs.CfnQueue", dead_letters.node.default_child).redrive_allow_policy = {
        "redrivePermission": "byQueue",
        "sourceQueueArns": [source],
    }


def system_actor(
    scope: Construct,
    mesh: Mesh,
    layer: lambda_.ILayerVersion,
    gateway: GatewayAddress,
    name: str,
) -> MeshFunction:
    """Add the function and connect it to the queue of the same name."""
    section = section_of(mesh.file, name)
    declaration = registry.of(mesh.table).actor_functions[mesh.table.actors[name].kind]
    queues, timeout = declaration.queues, declaration.timeout
    assert queues is not None, f"{name} has code of the user"
    assert timeout is not None, f"{name} has code of the user"
    place = Place(addresses=mesh.addresses, table=mesh.table)
    settings = FunctionSettings(
        name=name,
        handler=declaration.entry_point,
        code=mesh.code_of(declaration),
        grants=function_grants(name, place),
        timeout=timeout,
        memory=section.memory,
        environment={"ASYA_GATEWAY_URL": gateway.url},
        in_chains=mesh.is_in_chains(name),
        reserved=section.reserved,
        in_vpc=not declaration.is_in_layer,
    )
    function = MeshFunction(scope, mesh, layer, settings)
    function.add_event_source(
        EventSourceSettings(
            batch_size=queues.batch,
            window=queues.window,
            concurrency=section.concurrency,
            provisioned=section.provisioned,
            pollers=section.pollers,
        )
    )
    return function


def light_actor(
    scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress, name: str
) -> MeshFunction:
    """Add a light actor, or a user's end actor, and connect it to its queue."""
    section, actor, addresses = mesh.file.actors[name], mesh.table.actors[name], mesh.addresses
    access = [*access_grants(section.access, addresses), *secret_grants(section.secrets.values(), addresses)]
    place = Place(addresses=addresses, table=mesh.table)
    function = MeshFunction(
        scope,
        mesh,
        layer,
        FunctionSettings(
            name=name,
            handler=registry.of(mesh.table).actor_functions[actor.kind].entry_point,
            code=mesh.own_code(),
            grants=[*function_grants(name, place), *access],
            timeout=timings.function_timeout(actor.timeout, actor.batch.size),
            memory=section.memory,
            environment={**section.env, **handler_variables(actor), "ASYA_GATEWAY_URL": gateway.url},
            in_chains=True,
            reserved=section.reserved,
            in_vpc=True,
        ),
    )
    function.add_event_source(
        EventSourceSettings(
            batch_size=actor.batch.size,
            window=math.ceil(actor.batch.window),
            concurrency=section.concurrency,
            provisioned=section.provisioned,
            pollers=section.pollers,
        )
    )
    return function


def heavy_actor(
    scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress, name: str
) -> MeshFunction:
    """Add a heavy actor. The batch size of its queue is fixed; `batch` in the mesh file is about job runs."""
    function = system_actor(scope, mesh, layer, gateway, name)
    policy = _access_policy(function, mesh, name)
    job_role(function, mesh, name, policy)
    return function


def _access_policy(scope: Construct, mesh: Mesh, name: str) -> iam.IManagedPolicy:
    """Add the policy that StartJobRun names: the session of a run may do nothing else with the user's resources."""
    grants = run_access(mesh.file, mesh.addresses, name, mesh.job_code, mesh.kms_key)
    policy = iam.CfnManagedPolicy(
        scope,
        "Access",
        managed_policy_name=mesh.addresses.access_policy_name(name),
        description=f"What job runs of {name} may reach beside their own files",
        policy_document=document(grants),
    )
    acknowledge_wildcards(policy, grants)
    return iam.ManagedPolicy.from_managed_policy_arn(scope, "AccessAttached", policy.ref)
