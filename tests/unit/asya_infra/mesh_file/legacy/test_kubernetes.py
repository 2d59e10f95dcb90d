"""The legacy operator settings of an actor become its settings (`protocol §14`)."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import load_actor, problems_of, with_actor

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.rule("14.operator-settings")
def test_14_replicas_and_queue_length_become_concurrency_and_batch_size() -> None:
    section = load_actor("""
        handler: shop.one
        enabled: true
        transport: sqs
        scaling: {enabled: true, minReplicas: 1, maxReplicas: 10, queueLength: 5}
    """)
    assert (section.provisioned, section.concurrency, section.batch.size) == (1, 10, 5)
    assert load_actor("handler: shop.one\nscaling: {minReplicas: 0}").provisioned == 0


@pytest.mark.rule("14.operator-settings")
@pytest.mark.parametrize(
    ("resources", "memory"),
    [
        ("{limits: {cpu: 200m, memory: 128Mi}, requests: {cpu: 50m, memory: 64Mi}}", 354),
        ("{limits: {memory: 1Gi}}", 1024),
        ("{requests: {memory: 64Mi}}", 128),
        ("{requests: {memory: 2Gi}, limits: {cpu: 1}}", 2048),
        ("{limits: {cpu: 16}}", 10240),
    ],
)
def test_14_cpu_and_memory_become_the_memory_of_the_function(resources: str, memory: int) -> None:
    assert load_actor(f"handler: shop.one\nresources: {resources}").memory == memory


def test_14_a_workload_is_upgraded() -> None:
    section = load_actor("""
        scaling: {maxReplicas: 20}
        workload:
          kind: Deployment
          template:
            spec:
              containers:
                - {name: other, image: "envoy:1", args: [x]}
                - name: asya-runtime
                  image: shop:latest
                  env:
                    - {name: ASYA_HANDLER, value: shop.one}
                  resources: {limits: {memory: 256Mi}}
    """)
    assert (section.handler, section.concurrency, section.memory) == ("shop.one", 20, 256)


NO_COUNTERPART = "has no counterpart in a mesh file; remove it"


@pytest.mark.parametrize(
    ("keys", "place", "problem"),
    [
        ("transport: rabbitmq", "transport", "a mesh uses SQS, not rabbitmq; remove it"),
        ("enabled: false", "enabled", "an actor cannot be disabled; remove it from the file"),
        ("enabled: perhaps", "enabled", "should be true or false; got 'perhaps'"),
        ("scaling: {maxReplicas: 1}", "scaling.maxReplicas", "should be at least 2; got 1"),
        ("scaling: {maxReplicas: 2000}", "scaling.maxReplicas", "should be at most 1000; got 2000"),
        ("scaling: {minReplicas: -1}", "scaling.minReplicas", "should be at least 0; got -1"),
        ("scaling: {pollingInterval: 5}", "scaling.pollingInterval", NO_COUNTERPART),
        (
            "scaling: {enabled: false}",
            "scaling.enabled",
            "a function always scales with its queue; limit it with maxReplicas instead",
        ),
        ("scaling: 3", "scaling", "should be a mapping of minReplicas, maxReplicas and queueLength"),
        (
            "scaling: {maxReplicas: 9}\nconcurrency: 8",
            "scaling.maxReplicas",
            "is 9, but actors.a.concurrency is 8; keep one of them",
        ),
        (
            "resources: {limits: {memory: lots}}",
            "resources.limits.memory",
            "should be an amount of memory such as 128Mi or 1Gi; got 'lots'",
        ),
        ("resources: {limits: {gpu: 1}}", "resources", "should be requests and limits of cpu and memory"),
        ("workload: {template: {spec: {replicas: 3}}}", "workload.template.spec.replicas", NO_COUNTERPART),
        ("workload: {template: 1}", "workload.template", NO_COUNTERPART),
    ],
)
def test_14_settings_without_a_counterpart_are_problems(keys: str, place: str, problem: str) -> None:
    assert problems_of(with_actor(f"handler: shop.one\n{keys}")) == [f"5: actors.a.{place}: {problem}"]
