"""The EMR Serverless application of a mesh."""

from aws_cdk.aws_emrserverless import CfnApplication
from constructs import Construct

from asya.protocol import names
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.spark_model import ApplicationSection

_GIGABYTE = 1024
_MEMORY_PER_VCPU = 8  # gigabytes, the maximum of a worker with one vCPU


def application_id(scope: Construct, mesh: Mesh) -> str:
    """Return the id of the existing application in the settings, or add an application."""
    if mesh.existing_application:
        return mesh.existing_application
    section = mesh.file.spark.application
    memory = (section.max_memory or section.max_vcpu * _MEMORY_PER_VCPU * _GIGABYTE) // _GIGABYTE
    runs = {"maxConcurrentRuns": section.max_concurrent_runs} if section.max_concurrent_runs else None
    application = CfnApplication(
        scope,
        "Application",
        name=names.resource_name(mesh.namespace, "spark"),
        type="SPARK",
        release_label=section.release,
        architecture=section.architecture.upper(),
        auto_start_configuration={"enabled": True},
        auto_stop_configuration={"enabled": True, "idleTimeoutMinutes": max(1, round(section.idle_stop / 60))},
        maximum_capacity={"cpu": f"{section.max_vcpu} vCPU", "memory": f"{memory} GB"},
        scheduler_configuration=runs,
        initial_capacity=_warm_workers(section) or None,
    )
    return application.attr_application_id


def _warm_workers(section: ApplicationSection) -> list[CfnApplication.InitialCapacityConfigKeyValuePairProperty]:
    """Return the pre-initialized workers, in the default size."""
    kinds = {"Driver": section.warm.drivers, "Executor": section.warm.executors}
    worker = CfnApplication.WorkerConfigurationProperty(cpu="1 vCPU", memory="4 GB")
    return [
        CfnApplication.InitialCapacityConfigKeyValuePairProperty(
            key=kind,
            value=CfnApplication.InitialCapacityConfigProperty(worker_count=count, worker_configuration=worker),
        )
        for kind, count in kinds.items()
        if count
    ]
