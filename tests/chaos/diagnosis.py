"""What is known about an envelope with a violation, as the `asya` command shows it to an operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from asya_cli.main import app

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.chaos.violation import Violation

LARGEST_COUNT = 12
"""Further violations are listed without a diagnosis."""


@dataclass(frozen=True)
class Diagnosis:
    """A command and its output."""

    violation: Violation
    command: str
    output: str


def diagnose(violations: Sequence[Violation], state: Path) -> list[Diagnosis]:
    """Run the operator's command for the first violations of each kind."""
    diagnoses: list[Diagnosis] = []
    kinds: dict[str, int] = {}
    for violation in violations:
        kinds[violation.kind] = kinds.get(violation.kind, 0) + 1
        if violation.envelope_id and kinds[violation.kind] <= 3 and len(diagnoses) < LARGEST_COUNT:
            arguments = ["status", violation.envelope_id, "--timeline", "--state", str(state)]
            result = CliRunner().invoke(app, arguments)
            output = result.output or str(result.exception)
            diagnoses.append(Diagnosis(violation, f"asya {' '.join(arguments)}", output.strip()))
    return diagnoses
