"""The settings of a function, from its environment variables and `mesh.json`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from asya.protocol import names
from asya.protocol.mesh_table import MeshTable, decode_table


class SettingsError(RuntimeError):
    """A variable or the actor table is missing or invalid; the message names it."""


class SparkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the functions that start and complete job runs.

    Attributes:
        entry_point: the `s3://` URI of the start script.
        py_files: the `s3://` URI of the zip with the job library.
        jobs: the `s3://` URI of the archive with the user's jobs; None without any.
        packages: the `s3://` URI of the archive with the Python packages of jobs; None without packages.
        role_prefix: the ARN of a role without the role's name.
        access_policy_prefix: the ARN of an access policy without the policy's name.
        managed_logs: whether EMR Serverless keeps a copy of the logs of job runs in its own storage.
    """

    application_id: str
    role_prefix: str
    entry_point: str
    py_files: tuple[str, ...]
    access_policy_prefix: str
    jobs: str | None = None
    packages: str | None = None
    managed_logs: bool = True


class TraceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how often spans are exported.

    Attributes:
        endpoint: the URL for traces over OTLP/HTTP.
        share: the share of traces to record, from 0 to 1.
    """

    endpoint: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one function in one deployment.

    Attributes:
        actor: the name of the actor or of the system function, such as `x-dispatch`.
        bucket: the mesh's bucket.
        data_uri: the base of references; ends with `/`.
        results_uri: the base of x-sink's results; ends with `/`.
        queue_url_prefix: the URL of a queue without its name.
        gateway_url: the base URL of the gateway without a trailing slash; None without a gateway.
        stream_url: the base URL of token streams without a trailing slash; None if the gateway serves them.
        spark: None in functions without job runs.
        traces: None in a mesh without `telemetry`.
        heartbeats: whether alarms or dashboards read that sweeps finish.
    """

    table: MeshTable
    actor: str
    region: str
    bucket: str
    data_uri: str
    results_uri: str
    queue_url_prefix: str
    gateway_url: str | None = None
    stream_url: str | None = None
    spark: SparkSettings | None = None
    traces: TraceSettings | None = None
    heartbeats: bool = False

    @property
    def namespace(self) -> str:
        """The namespace of the mesh, including its stage."""
        return self.table.namespace

    @property
    def account(self) -> str:
        """The AWS account of the mesh's queues."""
        return self.queue_url_prefix.rstrip("/").rpartition("/")[2]

    def queue_url(self, actor: str) -> str:
        """The URL of an actor's queue (`protocol §4`)."""
        return self.queue_url_prefix + names.queue_name(self.namespace, actor)

    def dlq_url(self, actor: str) -> str:
        """The URL of the dead-letter queue behind an actor's queue."""
        return self.queue_url_prefix + names.dlq_name(self.namespace, actor)

    def table_name(self, kind: str) -> str:
        """The name of a DynamoDB table by its kind, such as `tasks` (`protocol §4`)."""
        return names.table_name(self.namespace, kind)


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Read the settings of this function.

    Args:
        environ: the environment variables; `LAMBDA_TASK_ROOT` is the folder of `mesh.json`.

    Raises:
        SettingsError: a variable is missing, or `mesh.json` is missing or invalid.
    """
    return Settings(
        table=_load_table(Path(_required(environ, "LAMBDA_TASK_ROOT")) / "mesh.json"),
        actor=_required(environ, "ASYA_ACTOR"),
        region=_required(environ, "AWS_REGION"),
        bucket=_required(environ, "ASYA_BUCKET"),
        data_uri=_folder(_required(environ, "ASYA_DATA_URI")),
        results_uri=_folder(_required(environ, "ASYA_RESULTS_URI")),
        queue_url_prefix=_folder(_required(environ, "ASYA_QUEUE_URL_PREFIX")),
        gateway_url=environ.get("ASYA_GATEWAY_URL", "").rstrip("/") or None,
        stream_url=environ.get("ASYA_STREAM_URL", "").rstrip("/") or None,
        spark=_load_spark(environ) if environ.get("ASYA_SPARK_APPLICATION_ID") else None,
        traces=_load_traces(environ) if environ.get("ASYA_TRACES_ENDPOINT") else None,
        heartbeats=bool(environ.get("ASYA_HEARTBEATS")),
    )


def _load_spark(environ: Mapping[str, str]) -> SparkSettings:
    return SparkSettings(
        application_id=_required(environ, "ASYA_SPARK_APPLICATION_ID"),
        role_prefix=_required(environ, "ASYA_ROLE_PREFIX"),
        entry_point=_required(environ, "ASYA_JOB_ENTRY_POINT"),
        py_files=tuple(part for part in environ.get("ASYA_JOB_PY_FILES", "").split(",") if part),
        access_policy_prefix=_required(environ, "ASYA_ACCESS_POLICY_PREFIX"),
        jobs=environ.get("ASYA_JOB_CODE") or None,
        packages=environ.get("ASYA_JOB_PACKAGES") or None,
        managed_logs=environ.get("ASYA_MANAGED_JOB_LOGS", "true") == "true",
    )


def _load_traces(environ: Mapping[str, str]) -> TraceSettings:
    return TraceSettings(
        endpoint=_required(environ, "ASYA_TRACES_ENDPOINT"), share=float(_required(environ, "ASYA_TRACES_SHARE"))
    )


def _load_table(path: Path) -> MeshTable:
    try:
        return decode_table(path.read_bytes())
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}; deploy the function again") from error
    except ValueError as error:
        raise SettingsError(f"{path}: {error}") from error


def _required(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name)
    if not value:
        raise SettingsError(f"the environment variable {name} is not set; deploy the function again")
    return value


def _folder(uri: str) -> str:
    return uri if uri.endswith("/") else uri + "/"
