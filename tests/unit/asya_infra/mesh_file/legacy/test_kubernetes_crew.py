"""The legacy sections `happy-end` and `error-end` become settings of the crew (`protocol §14`)."""

from textwrap import indent

import pytest

from asya_infra.mesh_file import to_table
from tests.unit.asya_infra.mesh_file.loading import load, problems_of

pytestmark = pytest.mark.usefixtures("folder")


VALUES = """
    namespace: shop
    actors:
      a: {handler: shop.one}
    happy-end:
      enabled: true
      scaling: {enabled: true, minReplicas: 1, maxReplicas: 10, queueLength: 5}
      workload:
        kind: Deployment
        template:
          spec:
            containers:
              - name: asya-runtime
                image: asya-crew:latest
                env:
                  - {name: ASYA_HANDLER, value: handlers.end_handlers.happy_end_handler}
                  - {name: ASYA_HANDLER_MODE, value: envelope}
                  - {name: ASYA_ENABLE_VALIDATION, value: "false"}
                  - {name: ASYA_S3_BUCKET, value: my-results-bucket}
                  - {name: ASYA_S3_RESULTS_PREFIX, value: happy-asya/}
                resources:
                  requests: {cpu: 50m, memory: 64Mi}
                  limits: {cpu: 200m, memory: 128Mi}
    error-end:
      enabled: false
      env: {ASYA_S3_BUCKET: my-results-bucket, ASYA_S3_ERRORS_PREFIX: error-asya/, ASYA_S3_ENDPOINT: "https://s3.x"}
"""


def test_14_happy_end_and_error_end_are_x_sink_and_x_sump() -> None:
    for text in (
        VALUES,
        VALUES.replace("    happy-end:", "      happy-end:").replace("    error-end:", "      error-end:"),
    ):
        loaded = load(text if text is VALUES else _below_actors(text))
        mesh = loaded.mesh
        assert list(mesh.actors) == ["a"]
        sink = mesh.crew.of("x-sink")
        assert (sink.provisioned, sink.concurrency, sink.batch_size, sink.memory) == (1, 10, 5, 354)
        assert (sink.enabled, mesh.crew.of("x-sump").enabled) == (True, False)
        assert mesh.storage.results_bucket == "my-results-bucket"
        assert mesh.sink.endpoint == to_table(loaded).sink.endpoint == "https://s3.x"
        assert to_table(loaded).sink.failed_prefix == "error-asya/"


def _below_actors(text: str) -> str:
    """The crew's sections moved below `actors`: two more spaces from there on."""
    head, problems, rest = text.partition("      happy-end:\n")
    return head + problems + indent(rest, "  ").replace("        error-end:", "      error-end:")


@pytest.mark.parametrize(
    ("section", "place", "problem"),
    [
        ("x-sink: {memory: 1g, batch: {size: 4}}", "", ""),
        ("x-sink: {batch: {size: 40}}", "x-sink.batch.size", "should be at most 10; got 40"),
        ("x-sink: {memry: 1g}", "x-sink.memry", "unknown key; did you mean 'memory'?"),
        (
            "happy-end: {env: {ASYA_HANDLER: shop.one}}",
            "happy-end.env.ASYA_HANDLER",
            "x-sink has its own handler; add an actor with yours to sink.hooks",
        ),
        (
            "happy-end: {env: {ASYA_HANDLER_MODE: payload}}",
            "happy-end.env.ASYA_HANDLER_MODE",
            "x-sink always has envelope; remove it",
        ),
        (
            "error-end: {env: {ASYA_ENABLE_VALIDATION: true}}",
            "error-end.env.ASYA_ENABLE_VALIDATION",
            "x-sump always has false; remove it",
        ),
        (
            "happy-end: {env: {ASYA_S3_ACCESS_KEY: minioadmin}}",
            "happy-end.env.ASYA_S3_ACCESS_KEY",
            "is refused: functions have roles instead of access keys",
        ),
        (
            "happy-end: {env: {AWS_REGION: us-east-1}}",
            "happy-end.env.AWS_REGION",
            "x-sink has no such variable; remove it",
        ),
        (
            "happy-end: {transport: rabbitmq}",
            "happy-end.transport",
            "a mesh uses SQS, not rabbitmq; remove it",
        ),
        (
            "happy-end: {env: {ASYA_S3_ENDPOINT: minio}}",
            "happy-end.env.ASYA_S3_ENDPOINT",
            "should be a URL such as https://s3.example; got 'minio'",
        ),
        (
            "happy-end: {handler: shop.one}",
            "happy-end",
            "the name 'happy-end' is reserved for the mesh's own actors; rename the actor",
        ),
    ],
)
def test_14_settings_of_the_crew(section: str, place: str, problem: str) -> None:
    problems = problems_of(f"namespace: shop\nactors:\n  a: {{handler: shop.one}}\n  {section}\n")
    assert problems == ([f"4: actors.{place}: {problem}"] if problem else [])
