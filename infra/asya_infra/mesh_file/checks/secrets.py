"""Checks that only actors with code have secrets, that it can reach them, and that no variable has two values."""

from collections.abc import Iterator

from asya.runtime.secret_values import PARAMETER_PREFIX
from asya_infra.mesh_file.checks.context import Context, Finding

# Without a VPC a job run reaches S3, Secrets Manager and a few more services, but not Systems Manager:
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/considerations.html
_UNREACHABLE = (
    "job runs cannot reach Parameter Store, because the application of the mesh is in no VPC; store the value in Secrets "
    "Manager, or put the application in a VPC (spark.application.vpc)"
)


def check_secrets(context: Context) -> Iterator[Finding]:
    """Check the secrets of all actors."""
    application = context.mesh.spark.application
    is_in_vpc = application.id is not None or application.vpc is not None or context.mesh.vpc is not None
    for name, actor in context.mesh.actors.items():
        place = ("actors", name, "secrets")
        if actor.secrets and actor.handler is None and actor.spark is None:
            yield place, "needs a handler or a job, because the values are for its code"
        if actor.spark is not None and not is_in_vpc:
            for variable, reference in actor.secrets.items():
                if reference.startswith(PARAMETER_PREFIX):
                    yield (*place, variable), _UNREACHABLE
        for variable in sorted(actor.secrets.keys() & actor.env.keys()):
            yield (*place, variable), "is in env too; keep one of them"
