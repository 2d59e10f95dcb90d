"""Draws docs/images/dashboard.svg from the overview dashboard of the example mesh and the recording.

    python -m tests.infra.dashboard_picture
    python -m tests.infra.dashboard_picture --record .asya --minutes 30 --origin "Ten analyses on …"

The second form first records the metrics of a local cloud that is up (`asya local up`) and has had traffic.
"""

import argparse
from pathlib import Path

from asya_infra.node import use_packaged_node

use_packaged_node()

from asya.client.connection import read_local  # noqa: E402
from asya.client.mesh_client import MeshClient  # noqa: E402
from tests.cloud.deployed_cloud import DeployedCloud  # noqa: E402
from tests.infra.dashboard_picture import recording  # noqa: E402
from tests.infra.dashboard_picture.picture import PICTURE, example_overview, metric_names, picture  # noqa: E402
from tests.infra.dashboard_picture.record import record  # noqa: E402


def main() -> None:
    """Record, if asked to, and draw."""
    parser = argparse.ArgumentParser(prog="python -m tests.infra.dashboard_picture")
    parser.add_argument("--record", type=Path, metavar="STATE", help="first record the metrics of this local cloud")
    parser.add_argument("--minutes", type=int, default=30, help="the length of the recording")
    parser.add_argument("--origin", default="", help="how the recording was made; needed with --record")
    arguments = parser.parse_args()
    body = example_overview()
    if arguments.record:
        if not arguments.origin:
            parser.error("--record needs --origin: which traffic the cloud had")
        cloud = DeployedCloud(MeshClient(read_local(arguments.record)), arguments.record)
        recording.write(record(cloud, metric_names(body), arguments.minutes, arguments.origin))
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(body))


if __name__ == "__main__":
    main()
