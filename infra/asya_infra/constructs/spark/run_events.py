"""How the mesh hears of its job runs: EventBridge tells the completion queue. Best effort; reconciling finds the rest."""

from aws_cdk import aws_events as events
from constructs import Construct

from asya.protocol import names
from asya_infra.addresses import Addresses
from asya_infra.mesh import Mesh


def rule_name(namespace: str) -> str:
    """The rule's name, which the completion queue's policy names too."""
    return names.resource_name(namespace, "job-runs")


def rule_arn(addresses: Addresses) -> str:
    """The rule's ARN."""
    return addresses.arn("events", f"rule/{rule_name(addresses.namespace)}")


def run_events(scope: Construct, mesh: Mesh, application_id: str) -> None:
    """Make the rule: job runs of this application that change their state."""
    completion = mesh.addresses.queue_arn(names.COMPLETION)
    events.CfnRule(
        scope,
        "RunEvents",
        name=rule_name(mesh.namespace),
        description=f"Job runs of the mesh {mesh.namespace} that change their state",
        event_pattern={
            "source": ["aws.emr-serverless"],
            "detail-type": ["EMR Serverless Job Run State Change"],
            "detail": {"applicationId": [application_id]},
        },
        targets=[events.CfnRule.TargetProperty(id="completion", arn=completion)],
    )
