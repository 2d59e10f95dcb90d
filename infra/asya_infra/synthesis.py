"""From a CDK app's context to the stacks of the mesh it names, checked by cdk-nag when they are synthesised."""

from pathlib import Path

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from asya_infra.mesh import Mesh
from asya_infra.mesh_file import load_mesh
from asya_infra.options import read_options
from asya_infra.stacks.mesh_stacks import make_stacks


def fill(app: App, folder: Path) -> Mesh:
    """Make the stacks of the mesh that the app's context names.

    Args:
        app: the app; its context is read (`asya_infra.options`).
        folder: what relative paths in the context are relative to.

    Raises:
        OptionError: if a context value cannot be used.
        MeshFileError: if the mesh file cannot be used.
        PackagesError: if packages cannot be installed for where they are to run.
    """
    options = read_options(app.node.try_get_context, folder)
    loaded = load_mesh(options.mesh, options.stage)
    mesh = Mesh(loaded, options)
    make_stacks(app, mesh)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return mesh
