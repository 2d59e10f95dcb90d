"""A running mesh of `asya dev`: its functions, handlers and jobs, which follow the changes of the author."""

from __future__ import annotations

import importlib
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from asya import registry
from asya.gateway.call_table import calls_of
from asya.protocol import names
from asya.protocol.exact_json import encode_json
from asya_infra.build.code_files import CodeFilesError
from asya_infra.build.folder import digest
from asya_infra.build.packages import PackagesError, package_inputs
from asya_infra.notes import code_notes
from asya_local.account import REGION
from asya_local.dev.connections import Connections
from asya_local.dev.deployment import Deployment
from asya_local.dev.functions import Tell, ToldLines, sweep_all
from asya_local.dev.gateway import Gateway, build_functions
from asya_local.dev.handlers import Handlers, WorkerDiedError, described
from asya_local.dev.jobs import JobOutput, upload_jobs
from asya_local.dev.worker_process import LiveCode, WorkerProcess, start_worker
from asya_local.emr.local_spark import unheeded_notes
from asya_local.errors import LocalCloudError
from asya_local.secret_file import FILE_NAME, secret_values, store_secrets
from asya_local.servers import EMR, MINISTACK, is_free
from asya_local.sources import code_folders
from asya_local.state_folder import LocalConnection
from asya_local.tools import machine_memory_mb

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from asya_infra.mesh_file import LoadedMesh
    from asya_local.dev.resources import Operator
    from asya_local.dev.startup import Emulator
    from asya_local.state_folder import StateFolder


class OwnCode:
    """The packages of these capabilities in this process.

    A change of the mesh imports them again. Their required packages are those of this process.

    Args:
        folder: The folder of the code, which comes after all other packages.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._tops: set[str] = set()

    def renew(self, entry_points: Sequence[str]) -> None:
        """Import these entry points as they are now.

        Raises:
            LocalCloudError: One cannot be imported; those from before stay.
        """
        self._tops |= {name.partition(".")[0] for name in entry_points}
        before = {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] in self._tops}
        if entry_points and self._folder not in sys.path:
            sys.path.append(self._folder)
        importlib.invalidate_caches()
        try:
            for name in entry_points:
                # `pkgutil.resolve_name` would hide why a module cannot be imported.
                importlib.import_module(name.rpartition(".")[0])
        except (Exception, SystemExit) as error:
            sys.modules.update(before)
            text = "".join(traceback.format_exception(error.with_traceback(_own(error, self._folder))))
            raise LocalCloudError(f"a capability of the mesh cannot be loaded:\n{text.rstrip()}") from error


def _own(error: BaseException, folder: str) -> TracebackType | None:
    """Return the part of a traceback that begins in the folder; all of it if none does."""
    found = error.__traceback__
    while found is not None and not found.tb_frame.f_code.co_filename.startswith(folder):
        found = found.tb_next
    return found or error.__traceback__


_SWEEP_SECONDS = 10.0
"""Between two runs of the scheduled functions, which report dead letters among others. On AWS some run each minute only."""


@dataclass(frozen=True)
class _Sources:
    """The hashes of what a mesh consists of; what differs decides what is loaded again."""

    mesh: str
    handlers: str
    packages: str
    jobs: str

    @classmethod
    def of(cls, loaded: LoadedMesh) -> _Sources:
        code, jobs = loaded.code_folder, loaded.jobs_folder
        return cls(
            mesh=digest([encode_json(loaded.mesh).decode(), *loaded.capabilities.digests.values()]),
            handlers=digest([code]),
            packages=digest(package_inputs(code)),
            jobs=digest([jobs, *package_inputs(jobs)]),
        )


class ServerEndedError(LocalCloudError):
    """A server of the emulator has ended, so the mesh is lost."""


class RunningMesh:
    """A running mesh."""

    def __init__(self, folder: StateFolder, emulator: Emulator, tell: Tell, secrets: Path | None = None) -> None:
        """Open the gateway, which answers no call yet; `begin` starts the rest.

        Args:
            folder: The state folder.
            emulator: The started emulator.
            tell: Takes the level and the text of what the author should know.
            secrets: The file with the values of secrets; None for that of the state folder.
        """
        self._folder = folder
        self._secrets = secrets or folder.root / FILE_NAME
        self._emulator = emulator
        self._lines = ToldLines()
        tell = self._lines.recording(tell)
        self._tell = tell
        self._gateway = _open_gateway(folder, tell)
        self._worker: WorkerProcess | None = None
        self._code = LiveCode(folder.temporary / "task")
        self._own_code = OwnCode(self._code.root)
        self._handlers = Handlers(Path(), self._tell_as_written)
        self._connections = Connections(emulator.poll_client(), emulator.streams_client(), self._handlers, tell)
        self._ended = threading.Event()
        self._has_told_of_jobs = False
        self._deployment: Deployment
        self._operator: Operator
        self._sources: _Sources

    def begin(self, loaded: LoadedMesh) -> None:
        """Begin with a mesh, as `_begin` does; an error of a service or of the system is one that the author can read."""
        with _readable():
            self._begin(loaded)

    def follow(self, loaded: LoadedMesh) -> tuple[str, ...]:
        """Load what has changed, as `_follow` does; an error of a service or of the system is one that the author can read."""
        with _readable():
            return self._follow(loaded)

    def _begin(self, loaded: LoadedMesh) -> None:
        """Create the resources of the mesh, load its code, and take messages.

        Raises:
            LocalCloudError: A process does not start, or a secret has no value.
            PackagesError: A required package cannot be installed.
        """
        secrets = secret_values(loaded.mesh, self._secrets)
        resources = self._emulator.resources
        mesh = Deployment(loaded=loaded, gateway_url=self._gateway.url)
        with ThreadPoolExecutor(1) as executor:
            worker = executor.submit(self._start_worker, mesh)
            resources.create(mesh, datetime.now(UTC))
            store_secrets(secrets, self._emulator.endpoint, self._emulator.root)
            self._operator = resources.create_operator(mesh)
            worker.result()
        self._use(self._with_jobs(mesh))
        self._sources = _Sources.of(loaded)
        self.connection().write(self._folder.connection)
        output = JobOutput(self._folder.emr, self._tell)
        threading.Thread(target=self._sweep, name="sweeps", daemon=True).start()
        threading.Thread(target=output.follow, args=(self._ended,), name="output of jobs", daemon=True).start()

    def _follow(self, loaded: LoadedMesh) -> tuple[str, ...]:
        """Load what has changed, and return its names: mesh, handlers (unless some cannot be loaded), packages, jobs.

        Raises:
            LocalCloudError: A process does not start, or the change needs a new start.
            PackagesError: A required package cannot be installed.
        """
        before, now = self._sources, _Sources.of(loaded)
        changed = tuple(name for name, value in vars(now).items() if value != getattr(before, name))
        if not changed:
            # A file may be as it was before the problem.
            return ("handlers",) if self._handlers.has_problems and self._load(self._deployment) else ()
        if loaded.namespace != self._deployment.loaded.namespace:
            raise LocalCloudError("The namespace has changed. End `asya dev` with Ctrl-C, and start it again.")
        mesh = replace(self._deployment, loaded=loaded)
        if "mesh" in changed:
            secrets = secret_values(loaded.mesh, self._secrets)
            self._emulator.resources.create(mesh, datetime.now(UTC))
            self._operator = self._emulator.resources.create_operator(mesh, self._operator.key)
            store_secrets(secrets, self._emulator.endpoint, self._emulator.root)
        self._use(self._with_jobs(mesh) if {"mesh", "jobs"} & {*changed} else mesh)
        self._sources = now
        return tuple(name for name in changed if name != "handlers" or not self._handlers.has_problems)

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders with the code of the mesh."""
        return code_folders(self._deployment.loaded)

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on the code of the mesh, and on settings of its jobs that this machine cannot honour."""
        unheeded = unheeded_notes(self._deployment.table.actors, machine_memory_mb())
        return (*code_notes(self._deployment.loaded), *unheeded)

    def connection(self) -> LocalConnection:
        """Return what programs need to use the mesh."""
        mesh, servers, key = self._deployment, self._emulator.servers, self._operator.key
        data, results = mesh.addresses.data, mesh.addresses.results
        return LocalConnection(
            endpoint_url=servers.endpoint,
            emr_endpoint_url=servers.emr_endpoint,
            gateway_url=self._gateway.url,
            region=REGION,
            access_key=key.access_key,
            secret_key=key.secret_key,
            namespace=mesh.loaded.namespace,
            results_bucket=results.bucket,
            results_prefix=results.prefix,
            data_bucket=data.bucket,
            data_prefix=data.prefix,
            tasks_table=names.table_name(mesh.loaded.namespace, "tasks"),
            mesh=str(mesh.loaded.path.resolve()),
        )

    def check(self) -> None:
        """Check that all processes run; a worker that has ended is started again.

        Raises:
            ServerEndedError: MiniStack has ended.
            LocalCloudError: The worker cannot be started again.
        """
        ended = self._emulator.ended()
        if MINISTACK in ended:
            raise ServerEndedError(
                f"{MINISTACK} ended, and the data of the mesh with it; see its log in {self._folder.logs}."
            )
        if EMR in ended and not self._has_told_of_jobs:
            self._has_told_of_jobs = True
            self._tell("error", f"{EMR} ended, so no job runs until the next start; see its log in {self._folder.logs}")
        if self._worker is not None and not self._worker.is_alive():
            self._tell("error", "the worker of the handlers ended; it starts again")
            with _readable():
                self._start_worker(self._deployment)
                self._load(self._deployment)

    def close(self) -> None:
        """Take no further messages, and end the processes of the handlers."""
        self._ended.set()
        self._emulator.closing.set()
        self._connections.end()
        self._gateway.end()
        self._handlers.close()
        if self._worker is not None:
            self._worker.end()

    def _tell_as_written(self, level: str, text: str) -> None:
        """Tell what may name the copies of the author's files that processes run."""
        self._tell(level, self._code.as_written(text))

    def _start_worker(self, mesh: Deployment) -> None:
        self._update_code(mesh)
        variables = {**self._emulator.variables(), **mesh.common_variables(self._code.root)}
        worker = start_worker(self._folder, self._code.root, self._cloud_python, variables, self._tell_as_written)
        outdated, self._worker = self._worker, worker
        self._handlers.socket = worker.socket
        if outdated is not None:
            outdated.end()

    def _update_code(self, mesh: Deployment) -> None:
        self._code.update(mesh.loaded, mesh.table_bytes())

    @property
    def _cloud_python(self) -> Path:
        return Path(self._emulator.tools.cloud_python)

    def _with_jobs(self, mesh: Deployment) -> Deployment:
        if not mesh.heavy_actors:
            return mesh
        self._emulator.start_jobs(mesh.loaded.namespace, self._tell)
        return mesh.with_spark(upload_jobs(mesh, self._emulator.endpoint, self._emulator.root))

    def _use(self, mesh: Deployment) -> None:
        """Let all functions be those of this state of the mesh."""
        self._update_code(mesh)
        self._load_own_code(mesh)
        self._deployment = mesh
        self._load(mesh)
        self._connections.update(mesh)
        functions = build_functions(mesh, self._tell, self._lines)
        self._gateway.serve(calls_of(mesh.table), functions, self._operator)

    def _load_own_code(self, mesh: Deployment) -> None:
        try:
            self._own_code.renew(registry.own_entry_points(mesh.table))
        except LocalCloudError as error:
            raise LocalCloudError(self._code.as_written(str(error))) from error

    def _load(self, mesh: Deployment) -> bool:
        """Load the handlers, and tell which cannot be loaded; returns whether all were."""
        problems = self._handlers.load({actor: mesh.variables(actor) for actor in mesh.light_actors})
        for text in described(problems):
            self._tell("error", self._code.as_written(text))
        return not problems

    def _sweep(self) -> None:
        while not self._ended.wait(_SWEEP_SECONDS):
            sweep_all(self._deployment, self._tell)


@contextmanager
def _readable() -> Iterator[None]:
    """Turn errors of services, of packages and of the system into errors of the command."""
    try:
        yield
    except WorkerDiedError as error:
        raise LocalCloudError("The worker of the handlers ended.") from error
    except (ClientError, BotoCoreError, OSError, PackagesError, CodeFilesError) as error:
        raise LocalCloudError(f"{type(error).__name__}: {error}") from error


def _open_gateway(folder: StateFolder, tell: Tell) -> Gateway:
    """Open the gateway on the port of the last one, if it is free."""
    known = folder.gateway_port.read_text() if folder.gateway_port.exists() else ""
    port = int(known) if known.isdecimal() and is_free(int(known)) else 0
    try:
        gateway = Gateway(port, tell)
    except OSError:  # it was taken meanwhile
        gateway = Gateway(0, tell)
    folder.gateway_port.write_text(str(gateway.port))
    return gateway
