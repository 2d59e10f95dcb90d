"""Permissions of functions in a VPC."""

from asya_infra.addresses import Addresses
from asya_infra.permissions.grant import Grant

_CHANGES = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:UnassignPrivateIpAddresses",
)
_READS = ("ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets")
_REASON = (
    "Lambda creates the network interfaces with the role of the function, names them itself, and shares them with other "
    "functions; the Describe actions take no resource. The code of the function is denied all of it."
)


def network_interfaces(addresses: Addresses, function: str) -> list[Grant]:
    """Allow Lambda to connect a function to its VPC, and deny the function's own code the same calls."""
    own_code = {"ArnEquals": {"lambda:SourceFunctionArn": addresses.function_arn(function)}}
    actions = (*_CHANGES, *_READS)
    return [
        Grant(actions, ("*",), reason=_REASON),
        Grant(actions, ("*",), reason=_REASON, conditions=own_code, effect="Deny"),
    ]
