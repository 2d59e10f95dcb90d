"""One `asya dev`: the processes and functions of a mesh, which follow its changes."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from asya.protocol import names
from asya_infra.build.folder import digest
from asya_infra.build.packages import REQUIREMENTS
from asya_local.cleanup import clean_up
from asya_local.connection import LocalConnection
from asya_local.dev.connections import Connections
from asya_local.dev.deployment import Deployment, load
from asya_local.dev.emulator import Emulator, start_emulator
from asya_local.dev.functions import Tell, sweep_all
from asya_local.dev.gateway import Functions, Gateway
from asya_local.dev.handlers import Handlers, described
from asya_local.dev.job_code import upload_jobs
from asya_local.dev.worker_process import WorkerProcess, start_worker
from asya_local.errors import LocalCloudError
from asya_local.keys import REGION
from asya_local.processes import sigint_ignored
from asya_local.secret_file import FILE_NAME, secret_values, store_secrets
from asya_local.servers import is_free, running_servers
from asya_local.state_folder import StateFolder
from asya_local.tools import Tools, find_tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asya_infra.mesh_file import LoadedMesh
    from asya_local.dev.resources import Operator
    from asya_local.steps import Steps

_SWEEP_SECONDS = 60.0


@contextmanager
def open_session(mesh: Path, state: Path, stage: str, tell: Tell, steps: Steps) -> Iterator[Session]:
    """Start a mesh; it ends with the block, and so does every process of it.

    Args:
        mesh: The mesh file.
        state: The state folder.
        stage: The stage of the mesh file.
        tell: Takes the level and the text of what the author should know.
        steps: Measures the steps of the start.

    Raises:
        LocalCloudError: The mesh file has problems, a tool is missing, a process does not start, or a local cloud runs.
        PackagesError: A required package cannot be installed.
    """
    loaded, folder = load(mesh, stage), StateFolder.at(state)
    with folder.locked():
        if running_servers(folder) is not None and not folder.dev.exists():
            raise LocalCloudError(
                f"A local cloud runs in {folder.root}. Run `asya local down --state {state}` first, or use another --state."
            )
        session: Session | None = None
        try:
            clean_up(folder)
            session = _start(loaded, folder, tell, steps)
            yield session
        finally:
            with sigint_ignored():
                if session is not None:
                    session.close()
                clean_up(folder)


def _start(loaded: LoadedMesh, folder: StateFolder, tell: Tell, steps: Steps) -> Session:
    tools = find_tools(spark=any(actor.spark is not None for actor in loaded.mesh.actors.values()))
    secrets = secret_values(loaded.mesh, folder.root / FILE_NAME)
    folder.create()
    folder.dev.touch()
    with steps.step("emulator"):
        emulator = start_emulator(folder, tools, loaded)
        emulator.use()
        store_secrets(secrets, emulator.endpoint, emulator.root)
    session = Session(folder, tools, emulator, tell)
    with steps.step("mesh"):
        session.begin(loaded)
    return session


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
            mesh=digest([loaded.mesh.model_dump_json()]),
            handlers=digest([code]),
            packages=digest([code / REQUIREMENTS]),
            jobs=digest([jobs]),
        )


class Session:
    """A running mesh."""

    def __init__(self, folder: StateFolder, tools: Tools, emulator: Emulator, tell: Tell) -> None:
        self._folder = folder
        self._tools = tools
        self._emulator = emulator
        self._tell = tell
        self._gateway = _open_gateway(folder, tell)
        self._worker: WorkerProcess | None = None
        self._handlers = Handlers(Path(), tell)
        self._connections = Connections(emulator.poll_client(), self._handlers, tell)
        self._ended = threading.Event()
        self._deployment: Deployment
        self._operator: Operator
        self._sources: _Sources

    def begin(self, loaded: LoadedMesh) -> None:
        """Create the resources of the mesh, load its code, and take messages.

        Raises:
            LocalCloudError: A process does not start.
            PackagesError: A required package cannot be installed.
        """
        resources = self._emulator.resources
        mesh = Deployment(loaded=loaded, gateway_url=self._gateway.url, token_key=resources.create_token_key())
        resources.create(mesh, datetime.now(UTC))
        self._operator = resources.create_operator(mesh)
        self._start_worker(mesh)
        self._use(self._with_jobs(mesh))
        self._sources = _Sources.of(loaded)
        self.connection().write(self._folder.connection)
        threading.Thread(target=self._sweep, name="sweeps", daemon=True).start()

    def follow(self, loaded: LoadedMesh) -> tuple[str, ...]:
        """Load what has changed, and return its names: mesh, handlers, packages, jobs.

        Raises:
            LocalCloudError: A process does not start, or the change needs a new start.
            PackagesError: A required package cannot be installed.
        """
        before, now = self._sources, _Sources.of(loaded)
        changed = tuple(name for name, value in vars(now).items() if value != getattr(before, name))
        if not changed:
            return ()
        mesh = replace(self._deployment, loaded=loaded)
        if loaded.namespace != self._deployment.loaded.namespace:
            raise LocalCloudError("The namespace has changed. End `asya dev` with Ctrl-C, and start it again.")
        if mesh.heavy_actors and not self._tools.java_home:
            raise LocalCloudError(
                "The mesh has its first heavy actor. End `asya dev` with Ctrl-C, and start it again: the emulator runs "
                "without Spark."
            )
        if "mesh" in changed:
            self._emulator.resources.create(mesh, datetime.now(UTC))
        if "packages" in changed:
            self._start_worker(mesh)
        self._use(self._with_jobs(mesh) if {"mesh", "jobs"} & {*changed} else mesh)
        self._sources = now
        return changed

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
            LocalCloudError: A server of the emulator has ended.
        """
        if ended := self._emulator.ended():
            raise LocalCloudError(f"{' and '.join(ended)} ended; see its log in {self._folder.logs}.")
        if self._worker is not None and not self._worker.is_alive():
            self._tell("error", "the worker of the handlers ended; it starts again")
            self._start_worker(self._deployment)
            self._load(self._deployment)

    def close(self) -> None:
        """Take no further messages, and end the processes of the handlers."""
        self._ended.set()
        self._connections.end()
        self._gateway.end()
        self._handlers.close()
        if self._worker is not None:
            self._worker.end()

    def _start_worker(self, mesh: Deployment) -> None:
        variables = {**self._emulator.variables(), **mesh.common_variables(self._folder.temporary)}
        worker = start_worker(self._folder, mesh.loaded, Path(self._tools.cloud_python), variables)
        outdated, self._worker = self._worker, worker
        self._handlers.socket = worker.socket
        if outdated is not None:
            outdated.end()

    def _with_jobs(self, mesh: Deployment) -> Deployment:
        if not mesh.heavy_actors:
            return mesh
        return mesh.with_spark(upload_jobs(mesh, self._emulator.endpoint, self._emulator.root))

    def _use(self, mesh: Deployment) -> None:
        """Let all functions be those of this state of the mesh."""
        self._deployment = mesh
        mesh.write_table(self._folder.temporary)
        self._load(mesh)
        self._connections.update(mesh)
        self._gateway.serve(Functions.of(mesh, self._tell), self._operator)

    def _load(self, mesh: Deployment) -> None:
        problems = self._handlers.load({actor: mesh.variables(actor) for actor in mesh.light_actors})
        for text in described(problems):
            self._tell("error", text)

    def _sweep(self) -> None:
        while not self._ended.wait(_SWEEP_SECONDS):
            sweep_all(self._deployment, self._tell)


def _open_gateway(folder: StateFolder, tell: Tell) -> Gateway:
    """Open the gateway on the port of the last one, if it is free."""
    known = folder.gateway_port.read_text() if folder.gateway_port.exists() else ""
    port = int(known) if known.isdecimal() and is_free(int(known)) else 0
    gateway = Gateway(port, tell)
    folder.gateway_port.write_text(str(gateway.port))
    return gateway
