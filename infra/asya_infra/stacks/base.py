"""The base of the stacks: the stack's name, and where its code is uploaded."""

from aws_cdk import DefaultStackSynthesizer, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from asya.protocol import names
from asya_infra.mesh import Mesh


class MeshStack(Stack):
    """A stack of a mesh.

    Its assets have the prefix of the mesh, so that job roles may be granted all of them: a deployment does not remove
    the permission of running jobs to read the code that they were started with.
    """

    def __init__(self, scope: Construct, mesh: Mesh, part: str) -> None:
        """Add the stack.

        Args:
            scope: the app.
            mesh: the mesh.
            part: the last part of the stack's name, such as `state` or `queues-3`.
        """
        super().__init__(
            scope,
            names.stack_name(mesh.namespace, part),
            env=mesh.environment,
            # Indentation doubles a template, and CloudFormation limits its bytes.
            suppress_template_indentation=True,
            synthesizer=DefaultStackSynthesizer(
                qualifier=mesh.file.bootstrap_qualifier, bucket_prefix=mesh.asset_prefix
            ),
            # CloudFormation gives a stack's tags to all of its resources. The tags of the mesh file, which may change, are on the
            # resources only, because some resources refuse changes.
            tags={"asya:namespace": mesh.namespace},
        )
        boundary = mesh.addresses.boundary_arn(mesh.file.permissions_boundary)
        if boundary is not None:
            policy = iam.ManagedPolicy.from_managed_policy_arn(self, "PermissionsBoundary", boundary)
            iam.PermissionsBoundary.of(self).apply(policy)
