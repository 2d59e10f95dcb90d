"""Where the repository is, for tests at any depth."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
