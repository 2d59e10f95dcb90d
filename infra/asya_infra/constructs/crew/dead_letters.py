"""The DLQ function with its schedule and its alarm rule (`protocol §11`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya import registry
from asya.protocol import names
from asya_infra.constructs.event_rules import RuleSettings, invoke_by_rule
from asya_infra.constructs.function import MeshFunction, declared
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.mesh import Mesh


def dead_letter_sweep(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
    """Add one function for all dead-letter queues. Their alarms and a schedule invoke it."""
    sweep = Construct(scope, "DeadLetterWatch")
    settings = declared(
        mesh,
        names.DLQ,
        code=mesh.table_code(),
        environment={"ASYA_GATEWAY_URL": gateway.url},
    )
    schedule = registry.sweeps_of(mesh.table)[names.DLQ]
    function = MeshFunction(sweep, mesh, layer, settings).function
    description = f"Looks at the dead letters of the mesh {mesh.namespace}"
    # The wildcard also matches meshes whose namespace starts with this one; the function ignores their queues.
    pattern: dict[str, object] = {
        "source": ["aws.cloudwatch"],
        "detail-type": ["CloudWatch Alarm State Change"],
        "detail": {
            "alarmName": [{"wildcard": names.dlq_name(mesh.namespace, "*")}],
            "state": {"value": ["ALARM"]},
        },
    }
    for rule in (
        RuleSettings(
            id="Sweep", name=schedule.rule, description=description, target="watch", schedule=schedule.expression
        ),
        RuleSettings(id="Alarm", name="dlq-alarm", description=description, target="watch", pattern=pattern),
    ):
        invoke_by_rule(sweep, mesh, function, rule)
