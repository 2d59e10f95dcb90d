"""EventBridge rules that invoke functions of the mesh."""

from dataclasses import dataclass
from typing import Any

from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya import registry
from asya.manifest import Schedule
from asya.protocol import names
from asya_infra.constructs.function import FunctionSettings, MeshFunction
from asya_infra.mesh import Mesh


@dataclass(frozen=True, kw_only=True)
class RuleSettings:
    """A rule with either a schedule or an event pattern.

    Attributes:
        id: the construct id of the rule; the permission's id is made from it.
        name: the name of the rule without the prefix of the mesh.
        description: the text for the console.
        target: the id of the function among the rule's targets.
        schedule: an expression such as `rate(1 minute)`.
        pattern: an EventBridge event pattern.
    """

    id: str
    name: str
    description: str
    target: str
    schedule: str | None = None
    pattern: dict[str, Any] | None = None


def invoke_by_rule(scope: Construct, mesh: Mesh, function: lambda_.Function, settings: RuleSettings) -> None:
    """Add a rule that invokes the function, and the permission to do so."""
    rule = events.CfnRule(
        scope,
        settings.id,
        name=names.resource_name(mesh.namespace, settings.name),
        description=settings.description,
        schedule_expression=settings.schedule,
        event_pattern=settings.pattern,
        targets=[events.CfnRule.TargetProperty(id=settings.target, arn=function.function_arn)],
    )
    lambda_.CfnPermission(
        scope,
        f"{settings.id}Permission",
        action="lambda:InvokeFunction",
        function_name=function.function_name,
        principal="events.amazonaws.com",
        source_arn=rule.attr_arn,
    )


def add_sweep(scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, settings: FunctionSettings) -> None:
    """Add a function that a schedule invokes, as its manifest declares it."""
    schedule = registry.of(mesh.table).functions[settings.name].called_by
    assert isinstance(schedule, Schedule), f"no schedule calls {settings.name}"
    function = MeshFunction(scope, mesh, layer, settings).function
    description = f"Looks after {schedule.checks} of the mesh {mesh.namespace}"
    invoke_by_rule(
        scope,
        mesh,
        function,
        RuleSettings(
            id="Sweep", name=schedule.rule, description=description, target="sweep", schedule=schedule.expression
        ),
    )
