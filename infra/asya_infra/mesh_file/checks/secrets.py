"""Checks that only actors with code have secrets, that it can reach them, and that no variable has two values."""

from collections.abc import Iterator

from asya.runtime.secret_values import PARAMETER_PREFIX
from asya_infra.mesh_file.checks.context import Context, Finding

# Without a VPC a job run reaches S3, Secrets Manager and a few more services, but not Systems Manager:
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/considerations.html
_UNREACHABLE = (
    "job runs cannot reach Parameter Store, because the application of the mesh is in no VPC; store the value in Secrets "
    "Manager, or name an application in a VPC (spark.application.id)"
)


def check(context: Context) -> Iterator[Finding]:
    """Check the secrets of all actors."""
    is_own_application = context.mesh.spark.application.id is None
    for name, actor in context.mesh.actors.items():
        place = ("actors", name, "secrets")
        if actor.secrets and actor.handler is None and actor.spark is None:
            yield place, "needs a handler or a job, because the values are for its code"
        if actor.spark is not None and is_own_application:
            for variable, reference in actor.secrets.items():
                if reference.startswith(PARAMETER_PREFIX):
                    yield (*place, variable), _UNREACHABLE
        for variable in sorted(actor.secrets.keys() & actor.env.keys()):
            yield (*place, variable), "is in env too; keep one of them"
