"""Checks the network: the form of ids, and the limits of Lambda and EMR Serverless, which are the same."""

import re
from collections.abc import Iterator

from asya_infra.limits.aws_limits import SECURITY_GROUPS, SUBNETS, Limit
from asya_infra.mesh_file.account_model import VpcSection
from asya_infra.mesh_file.checks.context import Context, Finding

# Key → prefix of an id, what it is, and how many there may be.
_KEYS: tuple[tuple[str, str, str, Limit], ...] = (
    ("subnets", "subnet", "a subnet", SUBNETS),
    ("security_groups", "sg", "a security group", SECURITY_GROUPS),
)


def check_networks(context: Context) -> Iterator[Finding]:
    """Check the networks of functions and of job runs."""
    mesh = context.mesh
    for place, vpc in ((("vpc",), mesh.vpc), (("spark", "application", "vpc"), mesh.spark.application.vpc)):
        if vpc is not None:
            for location, message in _vpc(vpc):
                yield (*place, *location), message


def _vpc(vpc: VpcSection) -> Iterator[Finding]:
    for key, prefix, what, limit in _KEYS:
        ids: tuple[str, ...] = getattr(vpc, key)
        for index, text in enumerate(ids):
            if not re.fullmatch(rf"{prefix}-[0-9a-f]{{8,17}}", text):
                yield (key, index), f"should be the id of {what} such as {prefix}-0123456789abcdef0; got {text!r}"
            elif text in ids[:index]:
                yield (key, index), f"{text} is listed twice; remove one of them"
        if len(ids) > limit.usable:
            yield (key,), f"has {len(ids)} entries; Lambda and EMR Serverless take {limit.usable} at most"
