"""The mesh to deploy, as constructs need it."""

from dataclasses import dataclass, field
from functools import cached_property

from aws_cdk import Aws, Environment
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs

from asya import registry
from asya.manifest import ActorFunction, Function
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable, encode_table, with_version
from asya_infra.addresses import Addresses
from asya_infra.build.functions import build_handlers, build_table
from asya_infra.build.jobs import needs_packages
from asya_infra.contracts.mesh_contracts import MeshContracts
from asya_infra.limits.aws_limits import LOG_DAYS
from asya_infra.mesh_file import LoadedMesh, to_table
from asya_infra.mesh_file.deployment_model import VpcSection
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.options import Options

_DAY = 86400
# The CDK lists them in the same order, and `INFINITE` last.
_LOG_RETENTIONS = dict(zip(LOG_DAYS, logs.RetentionDays, strict=False))


@dataclass(frozen=True)
class Mesh:
    """A mesh file with its actor table, the options of the deployment, and the contracts of its code."""

    loaded: LoadedMesh
    options: Options
    contracts: MeshContracts = field(default_factory=MeshContracts)

    @property
    def namespace(self) -> str:
        """The namespace with its stage."""
        return self.loaded.namespace

    @property
    def file(self) -> MeshFile:
        """The model of the mesh file."""
        return self.loaded.mesh

    @property
    def environment(self) -> Environment | None:
        """The account and region of the stacks; None for those of the credentials, and on the local cloud."""
        account, region = self.file.account, self.file.region
        if self.options.layer_target == "local" or not (account or region):
            return None
        return Environment(account=account, region=region)

    @cached_property
    def table(self) -> MeshTable:
        """The actor table, which every function reads."""
        return with_version(to_table(self.loaded, existing_application=self.existing_application))

    @cached_property
    def table_bytes(self) -> bytes:
        """The content of `mesh.json`."""
        return encode_table(self.table)

    @property
    def jobs_linger(self) -> bool:
        """Whether runs of a heavy actor linger."""
        return any(actor.spark is not None and actor.spark.linger > 0 for actor in self.table.actors.values())

    @property
    def jobs_call_aws(self) -> bool:
        """Whether the driver of a run calls AWS itself: it reads secrets, or it lingers."""
        return self.jobs_linger or any(actor.kind == "spark" and actor.secrets for actor in self.table.actors.values())

    @property
    def jobs_need_packages(self) -> bool:
        """Whether job runs have an archive of Python packages."""
        return needs_packages(self.loaded.jobs_folder, aws_client=self.jobs_call_aws)

    @property
    def records_contracts(self) -> bool:
        """Whether templates record the contracts. The local cloud replaces code without its templates."""
        return self.options.layer_target == "lambda"

    def is_in_chains(self, function: str) -> bool:
        """Whether one chain of calls may pass a function many times.

        A route may pass an actor many times. The end of a task may start the next one of a lane or a backfill, and a window
        that is extended is looked at again and again. Without them, Lambda's guard ends a loop that leads through other systems.
        """
        declaration = registry.of(self.table).functions.get(function)
        in_chains = declaration is not None and declaration.in_chains(self.table, function)
        return in_chains or names.is_routable(function)

    def table_code(self) -> lambda_.Code:
        """Return the code of a function without user code: `mesh.json`. The layer has the rest."""
        return lambda_.Code.from_asset(str(build_table(self.options.build_folder, self.table_bytes)))

    def code_of(self, function: Function | ActorFunction) -> lambda_.Code:
        """Return the code of a function: `mesh.json` if the layer has the rest, or the folder of the mesh's own code."""
        return self.table_code() if function.is_in_layer else self.own_code()

    def own_code(self) -> lambda_.Code:
        """Return the folder of the mesh's own code, with its packages and `mesh.json`."""
        return lambda_.Code.from_asset(
            str(
                build_handlers(
                    self.options.build_folder,
                    self.options.packages_target,
                    self.loaded.code_folder,
                    self.table_bytes,
                    hashed=self.file.requires_hashes,
                )
            )
        )

    @cached_property
    def addresses(self) -> Addresses:
        """The ARNs and URLs of the mesh, with CDK tokens for region and account."""
        return Addresses(
            namespace=self.namespace,
            partition=Aws.PARTITION,
            region=Aws.REGION,
            account=Aws.ACCOUNT_ID,
            url_suffix=Aws.URL_SUFFIX,
            data_bucket=self.file.storage.data_bucket,
            results_bucket=self.file.storage.results_bucket,
        )

    @property
    def kms_key(self) -> str | None:
        """The ARN of the customer managed key; None for keys of AWS, and on the local cloud, whose account has no such key."""
        return self.file.storage.kms_key if self.options.layer_target == "lambda" else None

    @property
    def is_watched(self) -> bool:
        """Whether alarms or dashboards read what sweeps say of themselves."""
        return self.file.notify.tells_somebody or self.file.telemetry.dashboards

    @property
    def vpc(self) -> VpcSection | None:
        """The network of user code in functions; None on the local cloud, which has no networks."""
        return self.file.vpc if self.options.layer_target == "lambda" else None

    @property
    def spark_vpc(self) -> VpcSection | None:
        """The network of job runs on the mesh's own application."""
        return self.file.spark.application.vpc or self.file.vpc if self.options.layer_target == "lambda" else None

    @property
    def log_retention(self) -> logs.RetentionDays:
        """The retention of logs."""
        return _LOG_RETENTIONS[round(self.file.storage.retention.logs / _DAY)]

    @property
    def asset_bucket(self) -> str:
        """The name of the bucket of `cdk bootstrap`, where all code is uploaded."""
        qualifier, addresses = self.file.bootstrap_qualifier, self.addresses
        return f"cdk-{qualifier}-assets-{addresses.account}-{addresses.region}"

    @property
    def asset_prefix(self) -> str:
        """The prefix of all uploaded code in the bucket of `cdk bootstrap`, also that of earlier deployments."""
        return f"asya-{self.namespace}/"

    @property
    def job_code(self) -> str:
        """A pattern for the uploaded objects, among them the code of job runs, also that of earlier deployments."""
        return self.addresses.objects_arn(self.asset_bucket, f"{self.asset_prefix}*")

    @property
    def tags(self) -> dict[str, str]:
        """The tags of all resources."""
        return {"asya:namespace": self.namespace, **self.file.tags}

    @property
    def existing_application(self) -> str | None:
        """The id of the existing Spark application in the options or the mesh file, if any."""
        return self.options.emr_application_id or self.file.spark.application.id
