"""What a function knows about where it runs; enters the process once, from the environment and `mesh.json`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asya.protocol import names
from asya.protocol.mesh_table import MeshTable, decode_table


class SettingsError(RuntimeError):
    """The function was deployed without something it needs; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """What only the functions that start and finish job runs are given.

    Attributes:
        entry_point: `s3://` URI of the script a run starts with.
        py_files: `s3://` URIs of the archives a run's Python imports from.
        access_policy_prefix: the ARN of an actor's access policy is this and the policy's name.
    """

    application_id: str
    job_role_arn: str
    entry_point: str
    py_files: tuple[str, ...]
    access_policy_prefix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that differs from one deployment, or one function of it, to another.

    Attributes:
        actor: whose function this is: an actor's name, or a system function's (`x-dispatch`).
        bucket: the mesh's own bucket.
        data_uri: what references are relative to; ends with `/`.
        results_uri: where x-sink writes; ends with `/`.
        queue_url_prefix: a queue's URL is this and its name.
        gateway_url: base of the status endpoint without a trailing slash; None where the deployment gives none.
        token_key: the key in KMS behind stream tokens; None but in functions that give or take such tokens.
        stream_url: base of the streams that a token opens, without a trailing slash; None where that is the gateway's own.
        spark: None but in the functions that deal with job runs.
    """

    table: MeshTable
    actor: str
    region: str
    bucket: str
    data_uri: str
    results_uri: str
    queue_url_prefix: str
    gateway_url: str | None = None
    token_key: str | None = None
    stream_url: str | None = None
    spark: SparkSettings | None = None

    @property
    def namespace(self) -> str:
        """The mesh's namespace, its stage included."""
        return self.table.namespace

    @property
    def account(self) -> str:
        """The AWS account that the mesh's queues are in."""
        return self.queue_url_prefix.rstrip("/").rpartition("/")[2]

    def queue_url(self, actor: str) -> str:
        """The URL of an actor's queue (`protocol §4`)."""
        return self.queue_url_prefix + names.queue_name(self.namespace, actor)

    def dlq_url(self, actor: str) -> str:
        """The URL of the dead-letter queue behind an actor's queue."""
        return self.queue_url_prefix + names.dlq_name(self.namespace, actor)

    def table_name(self, kind: str) -> str:
        """The name of one of the mesh's DynamoDB tables: tasks, pending, sink."""
        return names.table_name(self.namespace, kind)


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Read the settings of this function.

    Args:
        environ: the process's environment; `LAMBDA_TASK_ROOT` says where `mesh.json` lies.

    Raises:
        SettingsError: naming the variable or the file that is missing or wrong.
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
        token_key=environ.get("ASYA_TOKEN_KEY") or None,
        stream_url=environ.get("ASYA_STREAM_URL", "").rstrip("/") or None,
        spark=_load_spark(environ) if environ.get("ASYA_SPARK_APPLICATION_ID") else None,
    )


def _load_spark(environ: Mapping[str, str]) -> SparkSettings:
    return SparkSettings(
        application_id=_required(environ, "ASYA_SPARK_APPLICATION_ID"),
        job_role_arn=_required(environ, "ASYA_JOB_ROLE_ARN"),
        entry_point=_required(environ, "ASYA_JOB_ENTRY_POINT"),
        py_files=tuple(part for part in environ.get("ASYA_JOB_PY_FILES", "").split(",") if part),
        access_policy_prefix=_required(environ, "ASYA_ACCESS_POLICY_PREFIX"),
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
        raise SettingsError(f"the environment variable {name} is not set; the deployment gives it to every function")
    return value


def _folder(uri: str) -> str:
    return uri if uri.endswith("/") else uri + "/"
