"""Installs one mesh in one local cloud: servers, account, stacks, operator."""

from __future__ import annotations

import math
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from asya.protocol import names
from asya_infra.assemblies import Synthesis, SynthesisError
from asya_infra.mesh_file.spark import QUEUE_TIMEOUT_MINUTES, application_capacity, max_concurrent_runs
from asya_infra.options import OptionError, Options
from asya_infra.product.environments import EnvironmentsError
from asya_infra.product.interpreters import FUNCTION_PYTHON, interpreter_for
from asya_local.account import (
    ACCOUNT_ID,
    REGION,
    AccessKey,
    OperatorScope,
    aws_client,
    make_deployer,
    make_operator,
    read_keys,
    root_key,
    write_keys,
)
from asya_local.code_updates import CodeUpdate
from asya_local.deployment import Cdk, Snapshot, discard_snapshot, take_snapshot
from asya_local.emr.settings import ApplicationSettings, WorkerSettings
from asya_local.errors import LocalCloudError
from asya_local.processes import end_all, signals_ignored
from asya_local.secret_file import store_secrets
from asya_local.servers import ServerOptions, Servers, previous_servers, start_servers, wait_until
from asya_local.sources import Deployed, Sources, read_sources
from asya_local.state_folder import MARK, LocalConnection, bucket_and_prefix
from asya_local.tools import Tools
from asya_local.triggers import ExistingSources, create_existing_at

if TYPE_CHECKING:
    from asya_infra.mesh_file import LoadedMesh
    from asya_local.state_folder import StateFolder
    from asya_local.steps import Steps

_MAPPINGS_SECONDS = 60.0
_CONCURRENT_BATCHES = max(2, 2 * (os.cpu_count() or 1))
"""Of one queue. On AWS the mesh file's `concurrency` applies, because each batch has its own processor."""


@dataclass(frozen=True)
class UpOptions:
    """The options of a local cloud."""

    workers: WorkerSettings = field(default_factory=lambda: WorkerSettings(spares=1))
    """How job runs become processes. One driver starts in advance, so that the first job does not wait for a JVM."""
    starts_per_second: float = 1.0
    start_burst: int = 25
    """The quota of StartJobRun."""
    stage: str = ""
    """The stage of the mesh; empty for the mesh file without a stage."""
    secrets: Path | None = None
    """The file with the values of the secrets; by default `secrets.env` in the state folder."""
    faults: str = ""
    """A Python module whose class `Faults` injects faults into the EMR Serverless stand-in (tests)."""
    aws_proxy: str = ""
    """The URL of a proxy in front of MiniStack, which injects faults into the calls of functions and job runs (tests)."""


@dataclass(frozen=True)
class Installation:
    """The installation of one mesh in one state folder."""

    folder: StateFolder
    tools: Tools
    mesh: LoadedMesh
    options: UpOptions
    steps: Steps
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    """The values of the mesh's secrets and parameters, by name."""

    @cached_property
    def sources(self) -> Sources:
        """The hashes of the mesh as it is now."""
        return read_sources(self.mesh, self.options.stage, self._application().application_id, str(_function_python()))

    def start(self) -> LocalConnection:
        """Start a cloud with the mesh: with the state of an earlier deployment, or by a deployment."""
        self.folder.create()
        self.folder.rotate_logs()
        return self._restore() or self._install()

    def _install(self) -> LocalConnection:
        """Start the servers, and deploy the mesh; the next cloud of the folder may start with the state of this one."""
        discard_snapshot(self.folder)
        servers, deployer = self._start_servers()
        connection = self._deploy(servers, deployer)
        with self.steps.step("snapshot"):
            self._take_snapshot(servers, connection)
        return connection

    def _take_snapshot(self, servers: Servers, connection: LocalConnection) -> None:
        """Save the state for the next cloud; this one does without it, so a failure is logged only."""
        try:
            take_snapshot(self.folder, servers, Snapshot(self.sources, connection))
        except LocalCloudError as error:
            self._discard_snapshot(error)

    def _discard_snapshot(self, why: Exception) -> None:
        (self.folder.logs / "snapshot.log").write_text(f"{why}\n")
        discard_snapshot(self.folder)

    def _restore(self) -> LocalConnection | None:
        """Start the servers with the state of an earlier deployment; None if there is none for these templates.

        A state that cannot be restored is discarded; `snapshot.log` says why.
        """
        snapshot = Snapshot.read(self.folder)
        if snapshot is None or not snapshot.fits(self.sources, previous_servers(self.folder)):
            return None
        try:
            with self.steps.step("servers"):
                servers = start_servers(
                    self.folder, self.tools, root_key(self.folder.keys), self._server_options(), restores=True
                )
            self._wait_for_mappings(aws_client("lambda", servers.endpoint, self._deployer()))
        except (LocalCloudError, ClientError, BotoCoreError, OSError, KeyError) as error:
            self._discard_snapshot(error)
            end_all(self.folder)
            return None
        Deployed(snapshot.sources).write(self.folder.deployed)
        return self._follow_code(servers, snapshot.connection)

    def update(self, servers: Servers, connection: LocalConnection) -> LocalConnection:
        """Bring a running cloud up to date: nothing, the code alone, or all of the templates."""
        deployed = Deployed.read(self.folder.deployed)
        if deployed is not None and deployed.sources.templates == self.sources.templates:
            return self._follow_code(servers, connection)
        self._synthesize()
        connection = self._deploy(servers, self._deployer())
        if deployed is not None and deployed.in_place:
            # CloudFormation leaves a function as it is whose template names the code of the previous deployment again.
            self._replace_code(servers, handlers=True, jobs=True)
        return connection

    def _follow_code(self, servers: Servers, connection: LocalConnection) -> LocalConnection:
        """Replace the code that has changed since it was deployed."""
        self._store_secrets(servers, self._deployer())
        deployed = Deployed.read(self.folder.deployed)
        before, now = deployed.sources if deployed is not None else None, self.sources
        handlers = before is None or before.handlers != now.handlers
        jobs = before is None or before.jobs != now.jobs
        if handlers or jobs:
            self._replace_code(servers, handlers=handlers, jobs=jobs)
        connection.write(self.folder.connection)
        return connection

    def _replace_code(self, servers: Servers, *, handlers: bool, jobs: bool) -> None:
        update = CodeUpdate(
            self.mesh,
            Options(mesh=self.mesh.path, layer_target="local", local_python=_function_python()),
            self._application().application_id,
            servers.endpoint,
            self._deployer(),
        )
        if handlers:
            with self.steps.step("handlers"):
                update.replace_handlers()
        if jobs:
            with self.steps.step("jobs"):
                update.replace_jobs()
        Deployed(self.sources, in_place=True).write(self.folder.deployed)

    def _deployer(self) -> AccessKey:
        return read_keys(self.folder.keys)["deployer"]

    def _start_servers(self) -> tuple[Servers, AccessKey]:
        """Start the servers and synthesize the mesh in parallel; return the servers and the deployer's key."""
        with ThreadPoolExecutor(1) as executor:
            synthesis = executor.submit(self._synthesize)
            try:
                root = root_key(self.folder.keys)
                with self.steps.step("servers"):
                    servers = start_servers(self.folder, self.tools, root, self._server_options())
                deployer = make_deployer(servers.endpoint, root)
                write_keys(self.folder.keys, {"root": root, "deployer": deployer})
                with self.steps.step("cdk bootstrap"):
                    self._cdk.bootstrap(servers, deployer)
                synthesis.result()
            except BaseException:
                with signals_ignored():
                    end_all(self.folder)  # also the synthesis, because the executor waits for it
                raise
        return servers, deployer

    def _synthesize(self) -> None:
        """Make the templates and assets, or take those of an earlier synthesis of the same mesh."""
        stage = {"stage": self.options.stage} if self.options.stage else {}
        context = {
            "layer_target": "local",
            "local_python": str(_function_python()),
            "emr_application_id": self._application().application_id,
            **stage,
        }
        variables = {MARK: str(self.folder.root), "TMPDIR": str(self.folder.temporary)}
        with self.steps.step("cdk synth"):
            shutil.rmtree(self.folder.cdk_out, ignore_errors=True)
            try:
                Synthesis(self.mesh, context, variables).run().copy_to(self.folder.cdk_out)
            except (EnvironmentsError, OptionError, SynthesisError) as error:
                raise LocalCloudError("the stacks of the mesh cannot be made", str(error)) from error

    def _store_secrets(self, servers: Servers, deployer: AccessKey) -> None:
        if self.secrets:
            with self.steps.step("secrets"):
                store_secrets(self.secrets, servers.endpoint, deployer)

    def _deploy(self, servers: Servers, deployer: AccessKey) -> LocalConnection:
        """Deploy the templates; return when all queues are polled."""
        self._store_secrets(servers, deployer)
        self.folder.deployed.unlink(missing_ok=True)
        if self.mesh.mesh.triggers:
            create_existing_at(ExistingSources.of_file(self.mesh), servers.endpoint, deployer)
        with self.steps.step("cdk deploy"):
            outputs = self._cdk.deploy(servers, deployer)
        with self.steps.step("ready"):
            functions = aws_client("lambda", servers.endpoint, deployer)
            for name in self._cdk.functions_allowed_to_recurse():  # MiniStack's CloudFormation ignores this property
                functions.put_function_recursion_config(FunctionName=name, RecursiveLoop="Allow")
            connection = self._connect(servers, deployer, outputs)
            self._wait_for_mappings(functions)
            self._limit_concurrency(functions)
        connection.write(self.folder.connection)
        Deployed(self.sources).write(self.folder.deployed)
        return connection

    @property
    def _cdk(self) -> Cdk:
        assert self.tools.cdk is not None
        return Cdk(self.folder, self.tools.cdk)

    def _application(self) -> ApplicationSettings:
        """Return the Spark application with the limits that it has on AWS."""
        section = self.mesh.mesh.spark.application
        capacity = application_capacity(section)
        return ApplicationSettings(
            release_label=section.release,
            max_vcpu=capacity.vcpu,
            max_memory_gb=capacity.memory_gb,
            max_concurrent_runs=max_concurrent_runs(self.mesh.mesh),
            queue_timeout_minutes=QUEUE_TIMEOUT_MINUTES,
        )

    def _server_options(self) -> ServerOptions:
        workers = self.options.workers if self.tools.java_home else replace(self.options.workers, spares=0)
        return ServerOptions(
            event_queues=(names.queue_name(self.mesh.namespace, names.COMPLETION),),
            application=self._application(),
            workers=workers,
            starts_per_second=self.options.starts_per_second,
            start_burst=self.options.start_burst,
            faults=self.options.faults,
            aws_proxy=self.options.aws_proxy,
        )

    def _connect(self, servers: Servers, deployer: AccessKey, outputs: dict[str, dict[str, str]]) -> LocalConnection:
        namespace = self.mesh.namespace
        state = outputs[names.stack_name(namespace, "state")]
        gateway = outputs[names.stack_name(namespace, "gateway")]
        api_id, jwt_api_id = gateway["GatewayApiId"], gateway.get("JwtGatewayApiId")
        data_bucket, data_prefix = bucket_and_prefix(state["DataUri"])
        results_bucket, results_prefix = bucket_and_prefix(state["ResultsUri"])
        sources = ExistingSources.of_file(self.mesh)
        scope = OperatorScope(
            namespace=namespace,
            api_id=api_id,
            bucket=names.bucket_name(namespace, ACCOUNT_ID, REGION),
            data=f"{data_bucket}/{data_prefix}",
            results=f"{results_bucket}/{results_prefix}",
            tasks_table=state["TasksTable"],
            source_buckets=sources.buckets,
            source_buses=sources.buses,
        )
        previous = LocalConnection.read(self.folder.connection)
        current = AccessKey(previous.access_key, previous.secret_key) if previous is not None else None
        key = make_operator(servers.endpoint, deployer, scope, current)
        return LocalConnection(
            endpoint_url=servers.endpoint,
            emr_endpoint_url=servers.emr_endpoint,
            gateway_url=f"{servers.execute_api}/{api_id}/$default",
            region=REGION,
            access_key=key.access_key,
            secret_key=key.secret_key,
            namespace=namespace,
            results_bucket=results_bucket,
            results_prefix=results_prefix,
            data_bucket=data_bucket,
            data_prefix=data_prefix,
            tasks_table=state["TasksTable"],
            mesh=str(self.mesh.path.resolve()),
            jwt_gateway_url=f"{servers.execute_api}/{jwt_api_id}/$default" if jwt_api_id else None,
        )

    def _mappings(self, functions: Any) -> list[dict[str, Any]]:
        pages = functions.get_paginator("list_event_source_mappings").paginate()
        return [
            mapping
            for page in pages
            for mapping in page["EventSourceMappings"]
            if f":asya-{self.mesh.namespace}-" in mapping["EventSourceArn"]
        ]

    def _limit_concurrency(self, functions: Any) -> None:
        """Limit the processes that a burst starts: on AWS each has its own processor, here they share a few."""
        for mapping in self._mappings(functions):
            limit = mapping.get("ScalingConfig", {}).get("MaximumConcurrency", math.inf)
            if ":sqs:" in mapping["EventSourceArn"] and limit > _CONCURRENT_BATCHES:
                functions.update_event_source_mapping(
                    UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": _CONCURRENT_BATCHES}
                )

    def _wait_for_mappings(self, functions: Any) -> None:
        def disabled() -> list[str]:
            return [
                mapping["EventSourceArn"].rsplit(":", 1)[-1]
                for mapping in self._mappings(functions)
                if mapping["State"] != "Enabled"
            ]

        if not wait_until(lambda: not disabled(), _MAPPINGS_SECONDS):
            raise LocalCloudError(
                f"These queues are not polled after {_MAPPINGS_SECONDS:.0f} s: {', '.join(disabled())}. "
                f"See {self.folder.logs / 'ministack.log'}."
            )


def _function_python() -> Path:
    return interpreter_for(FUNCTION_PYTHON).path
