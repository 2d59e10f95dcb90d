"""The layer with the library and its packages: one version per stack, all from one asset."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya_infra.build.functions import build_layer
from asya_infra.mesh import Mesh


def mesh_layer(scope: Construct, mesh: Mesh) -> lambda_.LayerVersion:
    """Add the layer version for the functions of a stack."""
    on_arm = mesh.options.functions_on_arm
    options, traces = mesh.options, mesh.file.telemetry.is_on
    return lambda_.LayerVersion(
        scope,
        "Layer",
        code=lambda_.Code.from_asset(str(build_layer(options.build_folder, options.packages_target, traces=traces))),
        compatible_runtimes=[lambda_.Runtime.PYTHON_3_13],
        compatible_architectures=[lambda_.Architecture.ARM_64 if on_arm else lambda_.Architecture.X86_64],
        description=f"asya, for the mesh {mesh.namespace}",
        removal_policy=RemovalPolicy.DESTROY,
    )
