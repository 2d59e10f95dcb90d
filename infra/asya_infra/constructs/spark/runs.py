"""The functions that start job runs, complete them and reconcile lost ones (`protocol §10`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra.build.functions import build_dispatcher
from asya_infra.constructs.event_rules import add_sweep
from asya_infra.constructs.function import MeshFunction, declared
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.constructs.spark.application import application_id
from asya_infra.constructs.spark.job_code import JobCode
from asya_infra.constructs.spark.run_events import commit_events, run_events
from asya_infra.mesh import Mesh


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
