"""The functions that start job runs, take their results and find what was lost (`protocol §10`)."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya_infra import derived
from asya_infra.build.functions import build_dispatcher
from asya_infra.constructs.function import FeedSettings, FunctionSettings, MeshFunction
from asya_infra.constructs.gateway.gateway import GatewayAddress
from asya_infra.constructs.schedule import woken
from asya_infra.constructs.spark.application import application_id
from asya_infra.constructs.spark.job_code import JobCode
from asya_infra.constructs.spark.job_role import job_role
from asya_infra.constructs.spark.run_events import run_events
from asya_infra.mesh import Mesh
from asya_infra.permissions import spark

_SWEEP = "rate(5 minutes)"


class Spark(Construct):
    """Everything that job runs need. Made only for a mesh with a heavy actor."""

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, gateway: GatewayAddress) -> None:
        super().__init__(scope, "Spark")
        self._mesh, self._layer, self._gateway = mesh, layer, gateway
        self._application_id = application_id(self, mesh)
        code = JobCode.uploaded(self, mesh)
        job_role(self, mesh, code)
        run_events(self, mesh, self._application_id)
        self._environment = {
            "ASYA_GATEWAY_URL": gateway.url,
            "ASYA_SPARK_APPLICATION_ID": self._application_id,
            "ASYA_JOB_ROLE_ARN": mesh.addresses.role_arn(spark.JOB),
            "ASYA_JOB_ENTRY_POINT": code.entry_point.s3_object_url,
            "ASYA_JOB_PY_FILES": ",".join(code.py_files),
            "ASYA_ACCESS_POLICY_PREFIX": mesh.addresses.access_policy_prefix,
        }
        self._table_only = mesh.table_only()
        self._dispatcher()
        self._completion()
        self._reconciler()

    def _dispatcher(self) -> None:
        options, table = self._mesh.options, self._mesh.table_bytes
        folder = build_dispatcher(options.build_folder, options.packages_target, table)
        settings = FunctionSettings(
            name=names.DISPATCH,
            handler="asya.spark.lambdas.wiring.dispatch",
            code=lambda_.Code.from_asset(str(folder)),
            grants=spark.dispatch(self._mesh.addresses, self._application_id, self._gateway.api_id),
            timeout=derived.DISPATCH_TIMEOUT,
            environment=self._environment,
            in_routes=True,
        )
        # Runs of one actor are formed one after the other anyway; a few requests at a time keep actors independent.
        MeshFunction(self, self._mesh, self._layer, settings).fed_by_queue(FeedSettings(concurrency=5))

    def _completion(self) -> None:
        mesh = self._mesh
        settings = FunctionSettings(
            name=names.COMPLETION,
            handler="asya.spark.lambdas.wiring.complete",
            code=self._table_only,
            grants=spark.complete(mesh.addresses, mesh.table, self._application_id, self._gateway.api_id),
            timeout=derived.COMPLETION_TIMEOUT,
            memory=1024,
            environment=self._environment,
            in_routes=True,
        )
        # One run may hold thousands of envelopes: one event at a time. While some invocations take minutes to route what such
        # runs gave, others look at runs that work, which is quickly done but every few seconds.
        MeshFunction(self, mesh, self._layer, settings).fed_by_queue(FeedSettings(batch_size=1, concurrency=30))

    def _reconciler(self) -> None:
        settings = FunctionSettings(
            name=names.RECONCILE,
            handler="asya.spark.lambdas.wiring.reconcile",
            code=self._table_only,
            grants=spark.reconcile(self._mesh.addresses, self._application_id),
            timeout=derived.RECONCILE_TIMEOUT,
            environment=self._environment,
        )
        function = MeshFunction(self, self._mesh, self._layer, settings).function
        woken(self, self._mesh, function, name="reconcile", every=_SWEEP, why="lost job runs")
