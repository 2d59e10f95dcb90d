"""Deploys a mesh to AWS: `python -m asya_infra.deploy -c mesh=path/to/mesh.yaml -c stage=name`. `make deploy` calls it."""

import sys

from asya_infra.deployment.command_line import run
from asya_infra.deployment.commands import Deployment


def main() -> None:
    """Run the command."""
    run("asya_infra.deploy", sys.argv[1:], Deployment.deploy)


if __name__ == "__main__":
    main()
