"""What all heavy actors share: the Spark application, its job role and code, the dispatcher, the completion."""

from dataclasses import dataclass

from aws_cdk import aws_emrserverless
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_s3_assets import Asset
from constructs import Construct

from asya.protocol import names
from infra import derived
from infra.build.functions import build_dispatcher, build_table
from infra.build.jobs import build_jobs
from infra.function import FeedSettings, FunctionSettings, MeshFunction
from infra.gateway import GatewayAddress
from infra.mesh import Mesh
from infra.mesh_file.spark_model import ApplicationSection
from infra.permissions import spark
from infra.permissions.access import access_grants
from infra.role import mesh_role

RULE = "job-runs"
_ARCHIVE_FOLDER = "asya_packages"
_GIGABYTE = 1024
_MEMORY_PER_VCPU = 8  # gigabytes, the most that a worker of one vCPU has


class Spark(Construct):
    """Everything that job runs need. Made only for a mesh with a heavy actor."""

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
        super().__init__(scope, "Spark")
        application_id = mesh.existing_application or _application(self, mesh)
        code = _JobCode.uploaded(self, mesh)
        _job_role(self, mesh, code)
        _run_events(self, mesh, application_id)
        environment = {
            "ASYA_GATEWAY_URL": gateway.url,
            "ASYA_SPARK_APPLICATION_ID": application_id,
            "ASYA_JOB_ROLE_ARN": mesh.addresses.role_arn(spark.JOB),
            "ASYA_JOB_ENTRY_POINT": code.entry_point.s3_object_url,
            "ASYA_JOB_PY_FILES": f"{code.library.s3_object_url},{code.jobs.s3_object_url}",
            "ASYA_JOB_ARCHIVES": f"{code.packages.s3_object_url}#{_ARCHIVE_FOLDER}",
            "ASYA_ACCESS_POLICY_PREFIX": mesh.addresses.access_policy_prefix,
        }
        options, addresses = mesh.options, mesh.addresses
        dispatcher = MeshFunction(
            self,
            mesh,
            layer,
            FunctionSettings(
                name=names.DISPATCH,
                handler="asya.lambdas.spark_dispatch.handle",
                code=lambda_.Code.from_asset(
                    str(build_dispatcher(options.build_folder, options.packages_target, mesh.table_bytes))
                ),
                grants=spark.dispatch(addresses, application_id, gateway.api_id),
                timeout=derived.DISPATCH_TIMEOUT,
                environment=environment,
                in_routes=True,
            ),
        )
        # Runs of an actor are formed one after the other anyway; a few requests at a time keep actors independent.
        dispatcher.fed_by_queue(FeedSettings(concurrency=5))
        completion = MeshFunction(
            self,
            mesh,
            layer,
            FunctionSettings(
                name=names.COMPLETION,
                handler="asya.lambdas.spark_complete.handle",
                code=lambda_.Code.from_asset(str(build_table(options.build_folder, mesh.table_bytes))),
                grants=spark.complete(addresses, mesh.table, application_id, gateway.api_id),
                timeout=derived.COMPLETION_TIMEOUT,
                memory=1024,
                environment=environment,
                in_routes=True,
            ),
        )
        # One run may hold thousands of envelopes: one event at a time.
        completion.fed_by_queue(FeedSettings(batch_size=1, concurrency=10))


def _application(scope: Construct, mesh: Mesh) -> str:
    """Make the application; its id."""
    section = mesh.file.spark.application
    memory = (section.max_memory or section.max_vcpu * _MEMORY_PER_VCPU * _GIGABYTE) // _GIGABYTE
    application = aws_emrserverless.CfnApplication(
        scope,
        "Application",
        name=names.resource_name(mesh.namespace, "spark"),
        type="SPARK",
        release_label=section.release,
        architecture=section.architecture.upper(),
        auto_start_configuration={"enabled": True},
        auto_stop_configuration={"enabled": True, "idleTimeoutMinutes": max(1, round(section.idle_stop / 60))},
        maximum_capacity={"cpu": f"{section.max_vcpu} vCPU", "memory": f"{memory} GB"},
        scheduler_configuration={"maxConcurrentRuns": section.max_concurrent_runs}
        if section.max_concurrent_runs
        else None,
        initial_capacity=_warm_workers(section) or None,
    )
    return application.attr_application_id


def _warm_workers(
    section: ApplicationSection,
) -> list[aws_emrserverless.CfnApplication.InitialCapacityConfigKeyValuePairProperty]:
    """Workers of the default size, kept started."""
    kinds = {"Driver": section.warm.drivers, "Executor": section.warm.executors}
    cfn = aws_emrserverless.CfnApplication
    return [
        cfn.InitialCapacityConfigKeyValuePairProperty(
            key=kind,
            value=cfn.InitialCapacityConfigProperty(
                worker_count=count,
                worker_configuration=cfn.WorkerConfigurationProperty(cpu="1 vCPU", memory="4 GB"),
            ),
        )
        for kind, count in kinds.items()
        if count
    ]


@dataclass(frozen=True)
class _JobCode:
    """Job code as it lies in S3."""

    entry_point: Asset
    library: Asset
    jobs: Asset
    packages: Asset

    @classmethod
    def uploaded(cls, scope: Construct, mesh: Mesh) -> "_JobCode":
        target = mesh.options.jobs_target(mesh.file.spark.application.architecture)
        files = build_jobs(mesh.options.build_folder, target, mesh.loaded.jobs_folder)
        return cls(
            entry_point=Asset(scope, "EntryPoint", path=str(files.entry_point)),
            library=Asset(scope, "Library", path=str(files.library)),
            jobs=Asset(scope, "Jobs", path=str(files.jobs)),
            packages=Asset(scope, "Packages", path=str(files.packages)),
        )

    @property
    def keys(self) -> list[str]:
        return [asset.s3_object_key for asset in (self.entry_point, self.library, self.jobs, self.packages)]


def _job_role(scope: Construct, mesh: Mesh, code: _JobCode) -> None:
    """The role that every run takes on; its session is narrowed to the actor and the run."""
    actors = [mesh.file.actors[name] for name in spark.heavy_actors(mesh.table)]
    access = [grant for actor in actors for grant in access_grants(actor.access, mesh.addresses)]
    files = [address for actor in actors if actor.spark for address in (*actor.spark.archives, *actor.spark.py_files)]
    grants = [
        *spark.job(mesh.addresses, access, code.entry_point.s3_bucket_name, code.keys),
        *spark.named_files(mesh.addresses, files),
    ]
    mesh_role(Construct(scope, "Job"), mesh, spark.JOB, "emr-serverless.amazonaws.com", grants)


def _run_events(scope: Construct, mesh: Mesh, application_id: str) -> None:
    """Tell the completion queue when a run of this application has ended. Best effort: reconciling covers lost ones."""
    events.CfnRule(
        scope,
        "RunEvents",
        name=names.resource_name(mesh.namespace, RULE),
        description=f"Job runs of the mesh {mesh.namespace} that change their state",
        event_pattern={
            "source": ["aws.emr-serverless"],
            "detail-type": ["EMR Serverless Job Run State Change"],
            "detail": {"applicationId": [application_id]},
        },
        targets=[
            events.CfnRule.TargetProperty(id="completion", arn=mesh.addresses.queue_arn(names.COMPLETION)),
        ],
    )
