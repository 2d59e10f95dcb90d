"""The Spark application, job code, job roles, and the functions for runs (`protocol §10`).

Rules send state changes and commits of job runs to the completion queue. The reconciler finds lost events.
"""

from dataclasses import dataclass

from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_emrserverless import CfnApplication
from aws_cdk.aws_s3_assets import Asset
from aws_cdk.aws_ssm import StringParameter
from constructs import Construct

from asya.protocol import names
from asya_infra.build.functions import build_dispatcher
from asya_infra.build.jobs import Archive, build_jobs
from asya_infra.commit_events import commit_pattern
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.constructs.mesh_function import MeshFunction, add_sweep, declared
from asya_infra.constructs.roles import mesh_role
from asya_infra.constructs.undelivered import undelivered_events
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.deployment_model import VpcSection
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.spark import QUEUE_TIMEOUT_MINUTES, application_capacity, max_concurrent_runs, warm_size
from asya_infra.permissions.groups import lingering_actors
from asya_infra.permissions.job_runs import run_files


def parameter_name(namespace: str) -> str:
    """Return the name of the SSM parameter with the id of the mesh's application."""
    return f"/asya/{namespace}/spark-application-id"


def application_id(scope: Construct, mesh: Mesh) -> str:
    """Return the id of the existing application in the settings, or of the mesh's own one."""
    return mesh.existing_application or StringParameter.value_for_string_parameter(
        scope, parameter_name(mesh.namespace)
    )


def application(scope: Construct, mesh: Mesh) -> CfnApplication:
    """Add the application, and the SSM parameter with its id.

    The functions read the parameter. An export could not change as long as they import it.
    """
    section = mesh.file.spark.application
    capacity = application_capacity(section)
    resource = CfnApplication(
        scope,
        "Application",
        name=names.resource_name(mesh.namespace, "spark"),
        type="SPARK",
        release_label=section.release,
        architecture=section.architecture.upper(),
        auto_start_configuration={"enabled": True},
        auto_stop_configuration={"enabled": True, "idleTimeoutMinutes": max(1, round(section.idle_stop / 60))},
        maximum_capacity={"cpu": f"{capacity.vcpu} vCPU", "memory": f"{capacity.memory_gb} GB"},
        # Without a limit EMR Serverless starts 15 drivers, and leaves no room for their executors.
        scheduler_configuration={
            "maxConcurrentRuns": max_concurrent_runs(mesh.file),
            "queueTimeoutMinutes": QUEUE_TIMEOUT_MINUTES,
        },
        initial_capacity=_warm_workers(mesh.file) or None,
        network_configuration=_network(mesh.spark_vpc),
    )
    StringParameter(
        scope,
        "ApplicationId",
        parameter_name=parameter_name(mesh.namespace),
        string_value=resource.attr_application_id,
        description=f"The Spark application of the mesh {mesh.namespace}",
    )
    return resource


def _network(vpc: VpcSection | None) -> CfnApplication.NetworkConfigurationProperty | None:
    if vpc is None:
        return None
    return CfnApplication.NetworkConfigurationProperty(
        subnet_ids=list(vpc.subnets), security_group_ids=list(vpc.security_groups)
    )


def _warm_workers(mesh: MeshFile) -> list[CfnApplication.InitialCapacityConfigKeyValuePairProperty]:
    """Return the pre-initialized workers, in the size that fits every job of the mesh."""
    warm, size = mesh.spark.application.warm, warm_size(mesh)
    kinds = {"Driver": (warm.drivers, size.driver), "Executor": (warm.executors, size.executor)}
    return [
        CfnApplication.InitialCapacityConfigKeyValuePairProperty(
            key=kind,
            value=CfnApplication.InitialCapacityConfigProperty(
                worker_count=count,
                worker_configuration=CfnApplication.WorkerConfigurationProperty(
                    cpu=f"{worker.vcpu} vCPU",
                    memory=f"{worker.memory_gb} GB",
                    disk=f"{worker.disk_gb} GB" if worker.disk_gb else None,
                ),
            ),
        )
        for kind, (count, worker) in kinds.items()
        if count
    ]


@dataclass(frozen=True)
class JobCode:
    """The entry point of a run, the zip of its library, and the archives of its jobs and packages."""

    entry_point: Asset
    library: Asset
    jobs: Asset
    packages: Asset | None

    @classmethod
    def uploaded(cls, scope: Construct, mesh: Mesh) -> "JobCode":
        """Build the code and add its assets."""
        target = mesh.options.jobs_target(mesh.file.spark.application.architecture)
        files = build_jobs(
            mesh.options.build_folder,
            target,
            mesh.loaded.jobs_folder,
            hashed=mesh.file.requires_hashes,
            aws_client=mesh.jobs_call_aws,
        )
        return cls(
            entry_point=Asset(scope, "EntryPoint", path=str(files.entry_point)),
            library=Asset(scope, "Library", path=str(files.library)),
            jobs=_archive(scope, "Jobs", files.jobs),
            packages=None if files.packages is None else _archive(scope, "Packages", files.packages),
        )


def _archive(scope: Construct, name: str, packed: Archive) -> Asset:
    return Asset(scope, name, path=str(packed.archive), asset_hash=packed.digest)


def job_role(scope: Construct, mesh: Mesh, actor: str, access: iam.IManagedPolicy) -> None:
    """Add the role of an actor's job runs.

    One role per actor, because a role holds 10,240 characters of inline policies: the access of about eleven actors.

    Args:
        scope: the construct of the actor.
        mesh: the mesh.
        actor: the name of the heavy actor.
        access: the policy with the actor's `access`.
    """
    grants = run_files(mesh.file, mesh.addresses, actor, mesh.job_code)
    mesh_role(
        Construct(scope, "Job"), mesh, names.job_role(actor), "emr-serverless.amazonaws.com", grants, managed=[access]
    )


def rule_name(namespace: str) -> str:
    """Return the name of the rule."""
    return names.resource_name(namespace, "job-runs")


def commit_rule_name(namespace: str) -> str:
    """Return the name of the rule for commits of resident runs."""
    return names.resource_name(namespace, "commits")


def rule_arns(mesh: Mesh) -> str | list[str]:
    """Return the ARN of the rule, or those of both, for the policy of the completion queue."""
    runs, commits = (
        mesh.addresses.arn("events", f"rule/{name(mesh.namespace)}") for name in (rule_name, commit_rule_name)
    )
    return [runs, commits] if mesh.jobs_linger else runs


def run_name_prefix(namespace: str) -> str:
    """Return what the names of all job runs of a mesh begin with."""
    return f"asya.{namespace}."


def run_events(scope: Construct, mesh: Mesh, application_id: str) -> None:
    """Add the rule for the job runs of an application."""
    events.CfnRule(
        scope,
        "RunEvents",
        name=rule_name(mesh.namespace),
        description=f"Job runs of the mesh {mesh.namespace} that change their state",
        event_pattern={
            "source": ["aws.emr-serverless"],
            "detail-type": ["EMR Serverless Job Run State Change"],
            # Several meshes may share an application. The name of a run begins with the namespace of its mesh.
            "detail": {
                "applicationId": [application_id],
                "jobRunName": [{"prefix": run_name_prefix(mesh.namespace)}],
            },
        },
        targets=[_completion(mesh)],
    )


def commit_events(scope: Construct, mesh: Mesh) -> None:
    """Add the rule for the commits of resident runs, whose job runs go on."""
    events.CfnRule(
        scope,
        "CommitEvents",
        name=commit_rule_name(mesh.namespace),
        description=f"Commits of resident job runs of the mesh {mesh.namespace}",
        event_pattern=commit_pattern(mesh.addresses.bucket, lingering_actors(mesh.table)),
        targets=[_completion(mesh)],
    )


def _completion(mesh: Mesh) -> events.CfnRule.TargetProperty:
    """Return the queue of the completion as the target of a rule."""
    return events.CfnRule.TargetProperty(
        id="completion",
        arn=mesh.addresses.queue_arn(names.COMPLETION),
        dead_letter_config=undelivered_events(mesh),
    )


class Spark(Construct):
    """All resources for job runs. Only a mesh with a heavy actor has them."""

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
        super().__init__(scope, "Spark")
        self._mesh, self._layer, self._gateway = mesh, layer, gateway
        self._application_id = application_id(self, mesh)
        code = JobCode.uploaded(self, mesh)
        run_events(self, mesh, self._application_id)
        if mesh.jobs_linger:
            commit_events(self, mesh)
        self._environment = {
            "ASYA_GATEWAY_URL": gateway.url,
            "ASYA_SPARK_APPLICATION_ID": self._application_id,
            "ASYA_ROLE_PREFIX": mesh.addresses.role_arn_prefix,
            "ASYA_JOB_ENTRY_POINT": code.entry_point.s3_object_url,
            "ASYA_JOB_PY_FILES": code.library.s3_object_url,
            "ASYA_JOB_CODE": code.jobs.s3_object_url,
            **({} if code.packages is None else {"ASYA_JOB_PACKAGES": code.packages.s3_object_url}),
            "ASYA_ACCESS_POLICY_PREFIX": mesh.addresses.access_policy_prefix,
            # With a customer managed key, logs are in the bucket of the mesh only, which that key encrypts.
            **({} if mesh.kms_key is None else {"ASYA_MANAGED_JOB_LOGS": "false"}),
        }
        self._table_only = mesh.table_code()
        self._dispatcher()
        self._completion()
        self._reconciler()

    def _dispatcher(self) -> None:
        options, table = self._mesh.options, self._mesh.table_bytes
        folder = build_dispatcher(options.build_folder, options.packages_target, table)
        settings = declared(
            self._mesh,
            names.DISPATCH,
            code=lambda_.Code.from_asset(str(folder)),
            application=self._application_id,
            environment=self._environment,
        )
        MeshFunction(self, self._mesh, self._layer, settings).add_declared_event_sources()

    def _completion(self) -> None:
        mesh = self._mesh
        settings = declared(
            mesh,
            names.COMPLETION,
            code=self._table_only,
            application=self._application_id,
            environment=self._environment,
        )
        MeshFunction(self, mesh, self._layer, settings).add_declared_event_sources()

    def _reconciler(self) -> None:
        settings = declared(
            self._mesh,
            names.RECONCILE,
            code=self._table_only,
            application=self._application_id,
            environment=self._environment,
        )
        add_sweep(self, self._mesh, self._layer, settings)
