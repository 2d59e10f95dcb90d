"""Functions that are woken by the clock."""

from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra.mesh import Mesh


def woken(scope: Construct, mesh: Mesh, function: lambda_.Function, *, name: str, every: str, why: str) -> None:
    """Have a function woken regularly.

    Args:
        name: of the rule, less the mesh's prefix.
        every: EventBridge's expression, such as `rate(1 minute)`.
        why: what it looks after, for whoever meets the rule in the console.
    """
    rule = events.CfnRule(
        scope,
        "Sweep",
        name=names.resource_name(mesh.namespace, name),
        description=f"Looks after {why} of the mesh {mesh.namespace}",
        schedule_expression=every,
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
