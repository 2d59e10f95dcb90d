"""The CDK app, such as in `cdk synth -c mesh=path/to/mesh.yaml -c stage=name`."""

import sys
from pathlib import Path

from asya_infra.node import use_packaged_node

use_packaged_node()  # before the CDK is imported

from aws_cdk import App  # noqa: E402

from asya_infra.assembly import Findings  # noqa: E402
from asya_infra.build.folder import CacheError  # noqa: E402
from asya_infra.build.packages import PackagesError  # noqa: E402
from asya_infra.limits.gate import LimitError, check_mesh  # noqa: E402
from asya_infra.mesh_file import MeshFileError  # noqa: E402
from asya_infra.notes import notes  # noqa: E402
from asya_infra.options import OptionError  # noqa: E402
from asya_infra.synthesis import add_mesh  # noqa: E402


def main() -> None:
    """Synthesize the stacks. An error of the user is printed without a traceback."""
    app = App()
    try:
        mesh = add_mesh(app, Path(__file__).parent)
        for note in notes(mesh.loaded):
            print(f"note: {note}", file=sys.stderr)
        folder = Path(app.synth().directory)
        quotas = tuple(f"beyond the default quota of an account: {quota}" for quota in check_mesh(mesh, folder))
        print("".join(f"{line}\n" for line in quotas), end="", file=sys.stderr)
        Findings(quotas, unread=mesh.loaded.notes).write(folder)
    except (MeshFileError, OptionError, PackagesError, LimitError, CacheError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
