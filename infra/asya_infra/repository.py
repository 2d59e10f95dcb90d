"""Where the repository is: the sources that deployments are built from."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
