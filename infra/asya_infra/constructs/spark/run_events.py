"""The rule that sends state changes of job runs to the completion queue. The reconciler finds lost events."""

from aws_cdk import aws_events as events
from constructs import Construct

from asya.protocol import names
from asya_infra.addresses import Addresses
from asya_infra.mesh import Mesh


def rule_name(namespace: str) -> str:
    """Return the name of the rule."""
    return names.resource_name(namespace, "job-runs")


def rule_arn(addresses: Addresses) -> str:
    """Return the ARN of the rule, for the policy of the completion queue."""
    return addresses.arn("events", f"rule/{rule_name(addresses.namespace)}")


def run_name_prefix(namespace: str) -> str:
    """Return what the names of all job runs of a mesh begin with."""
    return f"asya.{namespace}."


def run_events(scope: Construct, mesh: Mesh, application_id: str) -> None:
    """Add the rule for the job runs of an application."""
    completion = mesh.addresses.queue_arn(names.COMPLETION)
    events.CfnRule(
        scope,
        "RunEvents",
        name=rule_name(mesh.namespace),
        description=f"Job runs of the mesh {mesh.namespace} that change their state",
        event_pattern={
            "source": ["aws.emr-serverless"],
            "detail-type": ["EMR Serverless Job Run State Change"],
            # Several meshes may share an application. The name of a run begins with the namespace of its mesh.
            "detail": {
                "applicationId": [application_id],
                "jobRunName": [{"prefix": run_name_prefix(mesh.namespace)}],
            },
        },
        targets=[events.CfnRule.TargetProperty(id="completion", arn=completion)],
    )
