"""What a function that records spans needs: the address of the collector and its layer, or the access to X-Ray."""

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya import registry
from asya_infra.mesh import Mesh
from asya_infra.permissions.grant import Grant


def trace_environment(mesh: Mesh, name: str) -> dict[str, str]:
    """Return the environment variables for spans; none for a function that records none."""
    telemetry = mesh.file.telemetry
    if not _records_spans(mesh, name):
        return {}
    base = telemetry.endpoint or f"https://xray.{mesh.addresses.region}.{mesh.addresses.url_suffix}"
    return {"ASYA_TRACES_ENDPOINT": f"{base.rstrip('/')}/v1/traces", "ASYA_TRACES_SHARE": f"{telemetry.sample:g}"}


def trace_grants(mesh: Mesh, name: str) -> list[Grant]:
    """Return the permissions for spans: those of X-Ray, if the function sends spans there."""
    if not (mesh.file.telemetry.xray and _records_spans(mesh, name)):
        return []
    return [Grant(("xray:PutTraceSegments",), ("*",), "X-Ray has no resources for traces.")]


def trace_layers(scope: Construct, mesh: Mesh, name: str) -> list[lambda_.ILayerVersion]:
    """Return the layers of the collector, if the mesh file names any. The local cloud cannot read layers of AWS."""
    if mesh.options.layer_target == "host" or not _records_spans(mesh, name):
        return []
    return [
        lambda_.LayerVersion.from_layer_version_arn(scope, f"Collector{number}", layer)
        for number, layer in enumerate(mesh.file.telemetry.collector)
    ]


def _records_spans(mesh: Mesh, name: str) -> bool:
    # Nothing on the local cloud may call AWS.
    is_reachable = not (mesh.file.telemetry.xray and mesh.options.layer_target == "host")
    if not (mesh.file.telemetry.is_on and is_reachable):
        return False
    declaration = registry.of(mesh.table).functions.get(name)
    if declaration is None:
        return name in mesh.file.actors or name in registry.of(mesh.table).crew_of_kinds
    return declaration.traces
