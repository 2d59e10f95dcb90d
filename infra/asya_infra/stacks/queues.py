"""The stack with the queues of one shard of the actors."""

import math
from collections.abc import Iterable

from aws_cdk import CfnWaitConditionHandle
from aws_cdk import aws_iam as iam
from constructs import Construct

from asya.protocol import names
from asya_infra import timings
from asya_infra.constructs.actors.queues import ActorQueue
from asya_infra.constructs.crew.result_index import allow_schedule
from asya_infra.constructs.spark.run_events import rule_arns
from asya_infra.mesh import Mesh
from asya_infra.permissions.spark import heavy_actors
from asya_infra.placement import CREW_SHARD
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
        actor = mesh.table.actors[name]
        system_timeouts = {
            "spark": timings.ENQUEUE_TIMEOUT,
            "fan_in": timings.FAN_IN_TIMEOUT,
            "pause": timings.PAUSE_TIMEOUT,
        }
        timeout = system_timeouts.get(actor.kind) or timings.function_timeout(actor.timeout, actor.batch.size)
        # The batch of a heavy actor is about job runs, and other system functions have no window.
        windows = {"spark": timings.ENQUEUE_WINDOW, "fan_in": 0, "pause": 0}
        window = windows.get(actor.kind, math.ceil(actor.batch.window))
        return ActorQueue(self, mesh, name, timeout, actor.max_receives, window=window)

    def _crew(self, mesh: Mesh) -> None:
        self._actor(mesh, names.FAN_IN)
        self._actor(mesh, names.PAUSE)
        for name in (names.SINK, names.SUMP, names.CHECKPOINT, names.RESUME):
            ActorQueue(self, mesh, name, timings.CREW_TIMEOUT, mesh.table.actors[name].max_receives)
        if names.INDEX in mesh.table.actors:
            allow_schedule(self._actor(mesh, names.INDEX), mesh.addresses)
        for name in names.REPORT_QUEUES:
            ActorQueue(
                self,
                mesh,
                name,
                timings.REPORTS_TIMEOUT,
                timings.REPORTS_MAX_RECEIVES,
                retention_days=timings.REPORTS_RETENTION_DAYS,
                wakes_dlq_function=False,
            )
        if mesh.table.tools:
            ActorQueue(self, mesh, names.PUSH, timings.PUSH_TIMEOUT, timings.PUSH_MAX_RECEIVES)
        if heavy_actors(mesh.table):
            ActorQueue(self, mesh, names.DISPATCH, timings.DISPATCH_TIMEOUT, timings.MAX_RECEIVES)
            completion = ActorQueue(self, mesh, names.COMPLETION, timings.COMPLETION_TIMEOUT, timings.MAX_RECEIVES)
            completion.queue.add_to_resource_policy(
                iam.PolicyStatement(
                    actions=["sqs:SendMessage"],
                    principals=[iam.ServicePrincipal("events.amazonaws.com")],
                    resources=[completion.queue.queue_arn],
                    conditions={"ArnEquals": {"aws:SourceArn": rule_arns(mesh)}},
                )
            )
