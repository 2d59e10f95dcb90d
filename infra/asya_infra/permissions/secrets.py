"""Permissions to read an actor's secrets."""

from collections.abc import Iterable

from asya.runtime.secret_values import PARAMETER_PREFIX
from asya_infra.addresses import Addresses
from asya_infra.permissions.grant import Grant


def secret_grants(references: Iterable[str], addresses: Addresses) -> list[Grant]:
    """Return the permissions to read these secrets and parameters, and nothing else."""
    names = sorted(set(references))
    parameters = [name.removeprefix(PARAMETER_PREFIX) for name in names if name.startswith(PARAMETER_PREFIX)]
    secrets = [name for name in names if not name.startswith(PARAMETER_PREFIX)]
    grants = []
    if secrets:
        # Secrets Manager appends a hyphen and six random characters to the name. A `*` would match longer names too.
        arns = [addresses.arn("secretsmanager", f"secret:{name}-??????") for name in secrets]
        grants.append(Grant(("secretsmanager:GetSecretValue",), tuple(arns)))
    if parameters:
        arns = [addresses.arn("ssm", f"parameter/{name.lstrip('/')}") for name in parameters]
        grants.append(Grant(("ssm:GetParameter",), tuple(arns)))
    return grants
