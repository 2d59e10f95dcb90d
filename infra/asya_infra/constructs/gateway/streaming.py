"""Continuous streams, for `gateway.streaming: adapter` (`protocol §13`)."""

from aws_cdk import Duration, Stack
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya import registry
from asya.gateway.call_table import CALLS
from asya.gateway.streams.sse import MAX_STREAM_SECONDS
from asya.protocol import names
from asya_infra.acknowledgements import acknowledge, acknowledge_check
from asya_infra.build.functions import START_SCRIPT, build_server
from asya_infra.constructs.mesh_function import FunctionSettings, MeshFunction
from asya_infra.mesh import Mesh
from asya_infra.permissions.needs import Place, declared_grants

_STAGE = "live"
_MARGIN = 30  # seconds
_CALLS_PER_SECOND, _BURST = 100, 200
# The account of the layer's publisher, and the layer version that was tested (release 1.0.0).
_PUBLISHER, _VERSION = "753240598075", 26
_NO_LOGS = "Logs of REST APIs need a role for the whole account; the function logs errors itself."
_NO_X_RAY = "Envelopes carry a W3C trace. X-Ray is charged for each call."
_TOKEN = "An EventSource cannot sign its request; the function checks a token that expires after an hour."
_ACKNOWLEDGED = {
    "AwsSolutions-APIG1": _NO_LOGS,
    "AwsSolutions-APIG6": _NO_LOGS,
    "Serverless-APIGWAccessLogging": _NO_LOGS,
    "Serverless-APIGWXrayEnabled": _NO_X_RAY,
    "AwsSolutions-APIG2": "The function reads only an id in the path and a token, and checks both.",
    "AwsSolutions-APIG3": "Calls are signed or have a token, and they are throttled; an account may add a WAF.",
    "AwsSolutions-APIG4": _TOKEN,
    "AwsSolutions-COG4": "Callers are IAM principals or have a stream token; the mesh has no user pools.",
}
_ACKNOWLEDGED_FOR_THE_STAGE = {
    "CKV_AWS_73": _NO_X_RAY,
    "CKV_AWS_76": _NO_LOGS,
    "CKV_AWS_120": "Every response is a stream of new events.",
}


class LiveStreams(Construct):
    """The API and its function.

    Attributes:
        url: the URL of the API with its stage, without a trailing slash.
    """

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion) -> None:
        super().__init__(scope, "Live")
        function = self._function(mesh, layer)
        api = apigateway.RestApi(
            self,
            "Api",
            rest_api_name=f"asya-{mesh.namespace}-live",
            endpoint_types=[apigateway.EndpointType.REGIONAL],
            cloud_watch_role=False,
            deploy_options=apigateway.StageOptions(
                stage_name=_STAGE, throttling_rate_limit=_CALLS_PER_SECOND, throttling_burst_limit=_BURST
            ),
        )
        integration = apigateway.LambdaIntegration(
            function,
            response_transfer_mode=apigateway.ResponseTransferMode.STREAM,
            timeout=Duration.seconds(round(MAX_STREAM_SECONDS) + _MARGIN),
            scope_permission_to_method=False,
        )
        for call in CALLS:
            if call.function == names.GATEWAY_STREAM and call.method == "GET":
                is_open = call.is_public
                kind = apigateway.AuthorizationType.NONE if is_open else apigateway.AuthorizationType.IAM
                method = api.root.resource_for_path(call.path).add_method("GET", integration, authorization_type=kind)
                if is_open:
                    acknowledge_check(method, "CKV_AWS_59", _TOKEN)
        for rule, reason in _ACKNOWLEDGED.items():
            acknowledge(api, rule, reason)
        for check, reason in _ACKNOWLEDGED_FOR_THE_STAGE.items():
            acknowledge_check(api.deployment_stage, check, reason)
        self.url = f"https://{api.rest_api_id}.execute-api.{mesh.addresses.region}.{Stack.of(self).url_suffix}/{_STAGE}"

    def _function(self, mesh: Mesh, layer: lambda_.ILayerVersion) -> lambda_.Function:
        options = mesh.options
        place = Place(addresses=mesh.addresses, table=mesh.table)
        return MeshFunction(
            self,
            mesh,
            layer,
            FunctionSettings(
                name=names.GATEWAY_LIVE,
                handler=START_SCRIPT,
                code=lambda_.Code.from_asset(str(build_server(options.build_folder, mesh.table_bytes))),
                grants=declared_grants(
                    registry.of(mesh.table).functions[names.GATEWAY_STREAM], names.GATEWAY_LIVE, place
                ),
                timeout=round(MAX_STREAM_SECONDS) + 2 * _MARGIN,
                environment={
                    "AWS_LAMBDA_EXEC_WRAPPER": "/opt/bootstrap",
                    "AWS_LWA_INVOKE_MODE": "response_stream",
                    "AWS_LWA_READINESS_CHECK_PATH": "/health",
                },
                reserved=mesh.file.gateway.watchers or None,
                layers=(self._adapter(mesh),),
            ),
        ).function

    def _adapter(self, mesh: Mesh) -> lambda_.ILayerVersion:
        """Return the public layer of the adapter, or the layer in the deployment's options."""
        options, addresses = mesh.options, mesh.addresses
        name = f"LambdaAdapterLayer{'Arm64' if options.functions_on_arm else 'X86'}"
        public = f"arn:{addresses.partition}:lambda:{addresses.region}:{_PUBLISHER}:layer:{name}:{_VERSION}"
        return lambda_.LayerVersion.from_layer_version_arn(self, "Adapter", options.web_adapter_layer or public)
