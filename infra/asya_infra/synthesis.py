"""Adds the stacks of a mesh to a CDK app. cdk-nag checks them at synthesis."""

from pathlib import Path

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from asya_infra.mesh import Mesh
from asya_infra.mesh_file import load_mesh
from asya_infra.options import read_options
from asya_infra.stacks.mesh_stacks import add_stacks


def add_mesh(app: App, folder: Path) -> Mesh:
    """Add the stacks of the mesh that the app's context selects (`asya_infra.options`).

    Args:
        app: the app, with its context.
        folder: the base of relative paths in the context.

    Raises:
        OptionError: a context value is invalid.
        MeshFileError: the mesh file is invalid.
        PackagesError: packages cannot be installed for their target.
    """
    options = read_options(app.node.try_get_context, folder)
    loaded = load_mesh(options.mesh, options.stage)
    mesh = Mesh(loaded, options)
    add_stacks(app, mesh)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return mesh
