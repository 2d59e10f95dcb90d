"""Runs the stand-in: `python -m asya_local.emr <settings.json>`, with root's key and the secret of the cloud in the environment."""

import logging
import os
import signal
import sys
from pathlib import Path

from asya_local.authentication.admission import SECRET_VARIABLE
from asya_local.emr.api.server import EmrServer
from asya_local.emr.settings import EmrSettings


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("werkzeug", "botocore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    settings = EmrSettings.read(Path(sys.argv[1]))
    server = EmrServer(settings, os.environ.pop(SECRET_VARIABLE))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.end())
    server.serve()


if __name__ == "__main__":
    main()
