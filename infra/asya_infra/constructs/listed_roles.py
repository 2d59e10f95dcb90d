"""The list of the roles of a mesh, by which consumers know who sent a message (`protocol §4.roles`)."""

from typing import cast

from aws_cdk import CfnCustomResource, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra import timings
from asya_infra.mesh import Mesh

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
