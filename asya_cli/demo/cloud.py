"""The demo's own local cloud."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from asya.client.connection import LOCAL_FILE
from asya.protocol import names
from asya_infra.product.places import FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from asya_cli.demo.stopwatch import Stopwatch

MESH_FILE = FILES / "mesh.yaml"


@dataclass(frozen=True)
class DemoCloud:
    """A local cloud in a state folder, with IAM enforced."""

    state: Path

    def up(self, on_step: Callable[[str, float], None]) -> None:
        """Start the cloud with the example mesh; returns when the mesh takes messages.

        `on_step` is called after each step with its name and its seconds.

        Raises:
            LocalCloudError: The cloud does not start.
        """
        from asya_local.cloud import UpOptions, up
        from asya_local.emr.settings import WorkerSettings
        from asya_local.steps import Steps

        # As on EMR, each run gets a process of its own. One starts in reserve while Lambda works.
        workers = WorkerSettings(slots=1, spares=1, reuse=False)
        up(
            MESH_FILE,
            self.state,
            UpOptions(workers=workers),
            Steps(lambda step: on_step(step.name, step.seconds)),
        )

    @property
    def is_up(self) -> bool:
        """Whether the cloud has started and not been stopped."""
        return (self.state / LOCAL_FILE).exists()

    def down(self) -> None:
        """Stop every process of the cloud; other files in its folder stay."""
        from asya_local.cloud import down

        down(self.state)

    @contextmanager
    def stopped_on_exit(self, *, keep: bool, stopwatch: Stopwatch) -> Iterator[None]:
        """Stop the cloud at the end, also after an error, Ctrl-C, SIGTERM or a closed terminal.

        With `keep` the cloud keeps running if it has started.
        """
        handlers = {number: signal.signal(number, _leave) for number in (signal.SIGTERM, signal.SIGHUP)}
        try:
            yield
        except BaseException:
            if not (keep and self.is_up):
                self.down()
            raise
        else:
            if not keep:
                with stopwatch.lap("stop the cloud"):
                    self.down()
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def actor_kinds(mesh_file: Path) -> dict[str, str]:
    """Return the platform of each actor of a mesh: Lambda or Spark."""
    from asya_infra.mesh_file import load_mesh

    actors = load_mesh(mesh_file).mesh.actors
    kinds = {name: "Spark" if actor.spark else "Lambda" for name, actor in actors.items()}
    return dict.fromkeys((names.FAN_IN, names.RESUME), "Lambda") | kinds
