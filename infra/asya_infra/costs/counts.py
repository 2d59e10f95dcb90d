"""What a hop, a task and a sweep use of AWS: measured numbers, and assumptions about durations.

`counts.json` is measured on a mesh in memory and recorded (`make generated`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from asya import registry

FILE: Final = Path(__file__).parent / "counts.json"
Used = Mapping[str, float]
"""The numbers by what AWS charges, such as `sqs requests`; `lambda calls: x-sink` are those of one function."""


@dataclass(frozen=True)
class Load:
    """How envelopes come.

    Attributes:
        name: its name in tables.
        batch: envelopes in a batch.
        report_batch: messages of reports in a batch of their function.
        actor_seconds: the assumed duration of a call of an actor of the mesh file.
        crew_seconds: that of the mesh's own functions with queues.
    """

    name: str
    batch: int
    report_batch: int
    actor_seconds: float
    crew_seconds: float

    def seconds(self, function: str) -> float:
        """Return the assumed duration of a call; `actor` is an actor of the mesh file."""
        if function == "actor":
            return self.actor_seconds
        return self.crew_seconds if registry.PRODUCT.functions[function].queues is not None else OTHER_SECONDS


FULL: Final = Load("batches of ten", 10, 10, 0.080, 0.150)
SINGLE: Final = Load("single envelopes", 1, 10, 0.050, 0.060)
LOADS: Final = (FULL, SINGLE)
OTHER_SECONDS: Final = 0.030
"""The assumed duration of a call of the gateway."""
SWEEP_SECONDS: Final = 0.2
"""The assumed duration of a sweep with nothing to do."""
MEMORY_GB: Final = 0.5
"""The memory of functions, in the mesh file and in the manifests."""
LINES_BYTES: Final = 350
"""Lambda's own lines for each call of an actor: START, END and REPORT. The crew logs none about a call that succeeds."""
INDEX_RUN: Final = (3 / 60, 3, 1, 3)
"""The assumed nightly job run of x-index: hours, workers, vCPU and GB of each."""


@cache
def counts() -> Mapping[str, Any]:
    """Return what is measured."""
    return dict(json.loads(FILE.read_text(encoding="utf-8")))
