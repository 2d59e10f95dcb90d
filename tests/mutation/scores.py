"""The kept scores of the mutation run, and the mutants that live and were judged."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from tests.mutation.mutants import Change

Verdict = Literal["equivalent", "accepted"]
_FOLDER = Path(__file__).parent
SCORES = _FOLDER / "scores.json"
# The share that tests reach changes with any code.
_TOLERANCE = 0.01
JUDGED = _FOLDER / "judged.toml"


@dataclass(frozen=True)
class Score:
    """The result of a package.

    Attributes:
        mutants: the mutants of the sample.
        killed: those that a test finds.
        equivalent: those that live because they change nothing that anybody could see.
        reached: the share of all changes of the package whose function a unit test reaches; the sample is of these.
    """

    mutants: int
    killed: int
    equivalent: int = 0
    reached: float = 1.0

    @property
    def share(self) -> float:
        """The share of the mutants that change something and are found."""
        return self.killed / max(1, self.mutants - self.equivalent)


def judged(path: Path = JUDGED) -> dict[Change, Verdict]:
    """The verdicts about mutants that live.

    Raises:
        ValueError: one has another verdict, or no reason.
    """
    verdicts: dict[Change, Verdict] = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
        if entry["verdict"] not in ("equivalent", "accepted") or not entry["reason"]:
            raise ValueError(f"{path.name}: {entry['place']} has no verdict, or no reason")
        verdicts[Change(entry["place"], entry["removed"].strip(), entry["added"].strip())] = entry["verdict"]
    return verdicts


def read_scores(path: Path = SCORES) -> dict[str, Score]:
    """The scores that no change may lower."""
    if not path.exists():
        return {}
    return {package: Score(**score) for package, score in json.loads(path.read_text(encoding="utf-8")).items()}


def write_scores(scores: Mapping[str, Score], path: Path = SCORES) -> None:
    """Write the scores."""
    path.write_text(
        json.dumps({name: asdict(score) for name, score in scores.items()}, indent=2) + "\n", encoding="utf-8"
    )


def lower(before: Mapping[str, Score], after: Mapping[str, Score]) -> list[str]:
    """The packages of which tests find less than before, or reach less."""
    return [
        name
        for name, score in after.items()
        if name in before and (score.share < before[name].share or score.reached < before[name].reached - _TOLERANCE)
    ]
