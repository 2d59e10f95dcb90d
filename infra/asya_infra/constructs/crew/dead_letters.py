"""The function that looks at the dead-letter queues, and what wakes it (`protocol §11`)."""

from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra import derived
from asya_infra.constructs.function import FunctionSettings, MeshFunction
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.mesh import Mesh
from asya_infra.permissions import dead_letters

# An alarm speaks when the first message comes; those that follow while it is on are found by the sweep.
_SWEEP = "rate(5 minutes)"


class DeadLetterWatch(Construct):
    """One function for all dead-letter queues, woken by their alarms and by a schedule."""

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
        super().__init__(scope, "DeadLetterWatch")
        self._mesh = mesh
        settings = FunctionSettings(
            name=names.DLQ,
            handler="asya.dead_letters.lambdas.wiring.dlq",
            code=mesh.table_only(),
            grants=dead_letters.dlq(mesh.addresses, mesh.table, gateway.api_id),
            timeout=derived.DLQ_TIMEOUT,
            environment={"ASYA_GATEWAY_URL": gateway.url},
        )
        self._function = MeshFunction(self, mesh, layer, settings).function
        self._wake("Sweep", "dlq-sweep", schedule=_SWEEP)
        # The pattern also fits meshes whose namespace begins with this one's; the function knows its own queues.
        pattern: dict[str, object] = {
            "source": ["aws.cloudwatch"],
            "detail-type": ["CloudWatch Alarm State Change"],
            "detail": {
                "alarmName": [{"wildcard": names.dlq_name(mesh.namespace, "*")}],
                "state": {"value": ["ALARM"]},
            },
        }
        self._wake("Alarm", "dlq-alarm", pattern=pattern)

    def _wake(
        self, name: str, kind: str, *, schedule: str | None = None, pattern: dict[str, object] | None = None
    ) -> None:
        rule = events.CfnRule(
            self,
            name,
            name=names.resource_name(self._mesh.namespace, kind),
            description=f"Looks at the dead letters of the mesh {self._mesh.namespace}",
            schedule_expression=schedule,
            event_pattern=pattern,
            targets=[events.CfnRule.TargetProperty(id="watch", arn=self._function.function_arn)],
        )
        lambda_.CfnPermission(
            self,
            f"{name}Permission",
            action="lambda:InvokeFunction",
            function_name=self._function.function_name,
            principal="events.amazonaws.com",
            source_arn=rule.attr_arn,
        )
