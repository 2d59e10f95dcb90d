"""A mesh with triggers in memory, for the commands of this process."""

from tests.unit.asya_cli.triggers.conftest import cloud as cloud  # noqa: PLC0414
