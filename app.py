"""The CDK app: reads the mesh file, makes the stacks. `cdk synth -c mesh=path/to/mesh.yaml -c stage=name`."""

import sys
from pathlib import Path

from infra.mesh_file import MeshFileError, check_available, load_mesh
from infra.node import use_packaged_node

use_packaged_node()

from aws_cdk import App, Validations  # noqa: E402  (the Node to use is decided before)
from cdk_nag import AwsSolutionsChecks  # noqa: E402

from infra.build.packages import PackagesError  # noqa: E402
from infra.mesh import Mesh  # noqa: E402
from infra.options import OptionError, read_options  # noqa: E402
from infra.stacks.mesh_stacks import make_stacks  # noqa: E402


def main() -> None:
    """Synthesise; what a person has to mend is said in plain lines."""
    app = App()
    try:
        options = read_options(app.node.try_get_context, Path(__file__).parent)
        loaded = load_mesh(options.mesh, options.stage)
        check_available(loaded)
        make_stacks(app, Mesh(loaded, options))
    except (MeshFileError, OptionError, PackagesError) as error:
        sys.exit(str(error))
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()


if __name__ == "__main__":
    main()
