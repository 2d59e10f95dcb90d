"""The stack with the queues of one shard of the actors."""

from collections.abc import Iterable

from aws_cdk import CfnWaitConditionHandle
from aws_cdk import aws_iam as iam
from constructs import Construct

from asya import registry
from asya.protocol import names
from asya_infra.constructs.actors.queues import ActorQueue
from asya_infra.constructs.crew.result_index import allow_schedule
from asya_infra.constructs.spark.run_events import rule_arns
from asya_infra.constructs.trigger_sources import restrict_senders
from asya_infra.mesh import Mesh
from asya_infra.placement import CREW_SHARD
from asya_infra.queue_settings import actor_queue, system_queues
from asya_infra.stacks.base import MeshStack


class QueuesStack(MeshStack):
    """A queue and a dead-letter queue for each of these actors. The crew's shard also has the mesh's own queues."""

    def __init__(self, scope: Construct, mesh: Mesh, shard: int, actors: Iterable[str]) -> None:
        super().__init__(scope, mesh, f"queues-{shard}")
        for name in actors:
            self._actor(mesh, name)
        if shard == CREW_SHARD:
            self._crew(mesh)
        if not self.node.children:
            # A template needs a resource.
            CfnWaitConditionHandle(self, "NoActors")

    def _actor(self, mesh: Mesh, name: str) -> ActorQueue:
        return ActorQueue(self, mesh, name, actor_queue(name, mesh.table))

    def _crew(self, mesh: Mesh) -> None:
        crew = {name: self._actor(mesh, name) for name in registry.crew_of(mesh.table)}
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
