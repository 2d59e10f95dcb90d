"""Destroys a mesh on AWS: `python -m asya_infra.destroy -c mesh=path/to/mesh.yaml -c stage=name`. `make destroy` calls it."""

import sys

from asya_infra.deployment.command_line import run
from asya_infra.deployment.commands import Deployment


def main() -> None:
    """Run the command."""
    run("asya_infra.destroy", sys.argv[1:], Deployment.destroy)


if __name__ == "__main__":
    main()
