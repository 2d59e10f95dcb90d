"""Takes permissions away from a function of a deployed mesh."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from asya.protocol import names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cloud.deployed_cloud import DeployedCloud


@contextmanager
def denied(cloud: DeployedCloud, function: str, *actions: str, resource: str = "*") -> Iterator[None]:
    """Denies these actions to the role of a function."""
    iam, region = cloud.client("iam"), cloud.mesh.connection.region
    role = names.role_name(cloud.mesh.connection.namespace, names.runner_of(function), region)
    statement = {"Effect": "Deny", "Action": list(actions), "Resource": resource}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_role_policy(RoleName=role, PolicyName="outage", PolicyDocument=document)
    try:
        yield
    finally:
        iam.delete_role_policy(RoleName=role, PolicyName="outage")
