"""The root of the repository, with the sources to deploy."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
