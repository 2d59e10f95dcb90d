"""The EMR Serverless application of a mesh."""

from aws_cdk.aws_emrserverless import CfnApplication
from aws_cdk.aws_ssm import StringParameter
from constructs import Construct

from asya.protocol import names
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.deployment_model import VpcSection
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.spark import (
    QUEUE_TIMEOUT_MINUTES,
    application_capacity,
    max_concurrent_runs,
    warm_size,
)


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
