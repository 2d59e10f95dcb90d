"""The demo's own local cloud."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from asya.protocol import names
from asya_cli.connection import LOCAL_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from asya_cli.demo.stopwatch import Stopwatch

PROJECT = Path(__file__).resolve().parents[2]
MESH_FILE = PROJECT / "mesh.yaml"


@dataclass(frozen=True)
class DemoCloud:
    """A local cloud in a state folder, with IAM enforced."""

    state: Path

    def up(self, tell: Callable[[str, float], None]) -> None:
        """Bring it up with the example mesh; returns when messages are being taken.

        `tell` hears of each step that is done: its name, and the seconds it took.

        Raises:
            LocalCloudError: It does not come up.
        """
        from asya_local.cloud import UpOptions, up
        from asya_local.emr.settings import WorkerSettings
        from asya_local.steps import Steps

        # As on EMR, a process of its own for each run; one is started in reserve while Lambda is at work.
        workers = WorkerSettings(slots=1, spares=1, reuse=False)
        up(
            MESH_FILE,
            self.state,
            UpOptions(auth=True, workers=workers),
            Steps(lambda step: tell(step.name, step.seconds)),
        )

    @property
    def is_up(self) -> bool:
        """Whether it came up and was not taken down."""
        return (self.state / LOCAL_FILE).exists()

    def down(self) -> None:
        """End every process of it; what else lies in the folder stays."""
        from asya_local.cloud import down

        down(self.state)

    @contextmanager
    def ended_afterwards(self, *, keep: bool, stopwatch: Stopwatch) -> Iterator[None]:
        """Take the cloud down at the end, however that comes: also by an error, Ctrl-C, SIGTERM or a closed terminal.

        With `keep` it stays up unless it never came up.
        """
        before = {number: signal.signal(number, _leave) for number in (signal.SIGTERM, signal.SIGHUP)}
        try:
            yield
        except BaseException:
            if not (keep and self.is_up):
                self.down()
            raise
        else:
            if not keep:
                with stopwatch.lap("taking it down"):
                    self.down()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def actor_kinds(mesh_file: Path) -> dict[str, str]:
    """What each actor of a mesh runs on: Lambda or Spark."""
    from asya_infra.mesh_file import load_mesh

    actors = load_mesh(mesh_file).mesh.actors
    kinds = {name: "Spark" if actor.spark else "Lambda" for name, actor in actors.items()}
    return dict.fromkeys((names.FAN_IN, names.RESUME), "Lambda") | kinds
