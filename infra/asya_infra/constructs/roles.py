"""Roles: each with a computed name and the permissions of its grants, and the list of the roles of a mesh.

By the list, consumers know who sent a message (`protocol §4.roles`).
"""

from collections.abc import Sequence
from typing import cast

from aws_cdk import CfnCustomResource, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra import timings
from asya_infra.acknowledgements import acknowledge_wildcards
from asya_infra.mesh import Mesh
from asya_infra.permissions.grant import Grant, document
from asya_infra.permissions.groups import routable_actors
from asya_infra.permissions.packing import pack, send_policies

_ID = "ListedRoles"
_TYPE = "Custom::AsyaRoles"


class ListedRoles(Construct):
    """The roles of one stack. Each stack lists its own: a stack that imported the ids of others would block their removal."""

    def __init__(self, stack: Stack, mesh: Mesh) -> None:
        super().__init__(stack, _ID)
        self.resource = CfnCustomResource(
            self,
            "Resource",
            service_token=mesh.addresses.function_arn(names.ROLES),
            service_timeout=timings.ROLES_ANSWER,
        )
        self.resource.add_override("Type", _TYPE)
        if mesh.options.relist is not None:
            # CloudFormation calls x-roles only if a property has changed.
            self.resource.add_property_override("Relist", mesh.options.relist)

    @classmethod
    def of(cls, scope: Construct, mesh: Mesh) -> "ListedRoles":
        """Return the list of the stack of a construct; the first function of the stack adds it."""
        stack = Stack.of(scope)
        found = stack.node.try_find_child(_ID)
        return cls(stack, mesh) if found is None else cast("ListedRoles", found)

    def complete(self) -> None:
        """Mark the list as complete with this stack: all others are deployed before it."""
        self.resource.add_property_override("Complete", "true")

    def add(self, name: str, function: lambda_.Function) -> None:
        """List the role of a function before the function exists, so that no message of an unlisted role is in a queue."""
        role = cast("iam.Role", function.role)
        self.resource.add_property_override(f"Roles.{name}", role.role_id)
        resource = cast("lambda_.CfnFunction", function.node.default_child)
        resource.add_override("DependsOn", [self.resource.logical_id])


def mesh_role(
    scope: Construct,
    mesh: Mesh,
    name: str,
    service: str,
    grants: list[Grant],
    *,
    managed: Sequence[iam.IManagedPolicy] = (),
) -> iam.Role:
    """Add the role of a function or of job runs.

    Args:
        scope: the construct that needs the role.
        mesh: the mesh.
        name: the name of the actor or the system function.
        service: the service that may assume the role, such as `lambda.amazonaws.com`.
        grants: the permissions; duplicates count once.
        managed: further policies of the mesh.
    """
    queues = frozenset(mesh.addresses.queue_arn(actor) for actor in routable_actors(mesh.table))
    packed = pack(grants, queues)
    own = [_managed(scope, f"Permissions{number}", part) for number, part in enumerate(packed.managed)]
    shared = _send_everywhere(scope, queues) if packed.sends_everywhere else []
    role = iam.Role(
        scope,
        "Role",
        role_name=names.role_name(mesh.namespace, name, mesh.addresses.region),
        # Lambda and EMR Serverless name the account for which they assume a role.
        assumed_by=iam.ServicePrincipal(
            service, conditions={"StringEquals": {"aws:SourceAccount": mesh.addresses.account}}
        ),
        inline_policies={"permissions": iam.PolicyDocument.from_json(document(packed.inline))},
        managed_policies=[*managed, *own, *shared] or None,
    )
    acknowledge_wildcards(role, packed.inline)
    return role


def _send_everywhere(scope: Construct, queues: frozenset[str]) -> list[iam.IManagedPolicy]:
    """Return the policies that the roles of a stack share; the first such role adds them."""
    stack = Stack.of(scope)
    shared = stack.node.try_find_child("SendToAll")
    if shared is None:
        shared = Construct(stack, "SendToAll")
        for number, part in enumerate(send_policies(queues)):
            _managed(shared, f"Queues{number}", part)
    return [
        iam.ManagedPolicy.from_managed_policy_arn(scope, f"SendToAll{number}", policy.ref)
        for number, policy in enumerate(shared.node.children)
        if isinstance(policy, iam.CfnManagedPolicy)
    ]


def _managed(scope: Construct, construct_id: str, grants: tuple[Grant, ...]) -> iam.IManagedPolicy:
    policy = iam.CfnManagedPolicy(scope, construct_id, policy_document=document(grants))
    acknowledge_wildcards(policy, grants)
    return iam.ManagedPolicy.from_managed_policy_arn(scope, f"{construct_id}Attached", policy.ref)
