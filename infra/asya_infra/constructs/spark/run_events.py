"""The rules that send state changes and commits of job runs to the completion queue. The reconciler finds lost events."""

from aws_cdk import aws_events as events
from constructs import Construct

from asya.protocol import names
from asya_infra.commit_events import commit_pattern
from asya_infra.mesh import Mesh
from asya_infra.permissions.groups import lingering_actors


def rule_name(namespace: str) -> str:
    """Return the name of the rule."""
    return names.resource_name(namespace, "job-runs")


def commit_rule_name(namespace: str) -> str:
    """Return the name of the rule for commits of resident runs."""
    return names.resource_name(namespace, "commits")


def rule_arns(mesh: Mesh) -> str | list[str]:
    """Return the ARN of the rule, or those of both, for the policy of the completion queue."""
    runs, commits = (
        mesh.addresses.arn("events", f"rule/{name(mesh.namespace)}") for name in (rule_name, commit_rule_name)
    )
    return [runs, commits] if mesh.jobs_linger else runs


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


def commit_events(scope: Construct, mesh: Mesh) -> None:
    """Add the rule for the commits of resident runs, whose job runs go on."""
    events.CfnRule(
        scope,
        "CommitEvents",
        name=commit_rule_name(mesh.namespace),
        description=f"Commits of resident job runs of the mesh {mesh.namespace}",
        event_pattern=commit_pattern(mesh.addresses.bucket, lingering_actors(mesh.table)),
        targets=[events.CfnRule.TargetProperty(id="completion", arn=mesh.addresses.queue_arn(names.COMPLETION))],
    )
