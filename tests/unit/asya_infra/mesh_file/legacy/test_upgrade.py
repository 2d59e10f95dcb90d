"""protocol §14: legacy environment variables and operator settings in a mesh file."""

from textwrap import dedent, indent
from typing import Any

import pytest

from asya_infra.mesh_file import to_table
from asya_infra.mesh_file.actor_model import ActorSection
from asya_infra.mesh_file.legacy.values import as_cores, as_duration, as_megabytes
from asya_infra.mesh_file.legacy.variables import handler_variables
from tests.unit.asya_infra.mesh_file.loading import load, problems_of

pytestmark = pytest.mark.usefixtures("folder")


def with_actor(keys: str) -> str:
    """A mesh of one actor, `a`, with these lines, the first of them in line 4."""
    return "namespace: shop\nactors:\n  a:\n" + indent(dedent(keys).strip("\n"), "    ") + "\n"


def actor(keys: str) -> ActorSection:
    return load(with_actor(keys)).mesh.actors["a"]


# --- variables


@pytest.mark.rule("14.environment")
def test_14_variables_of_an_actor_are_its_settings() -> None:
    section = actor("""
        env:
          ASYA_HANDLER: shop.one
          ASYA_HANDLER_MODE: envelope
          ASYA_ENABLE_VALIDATION: "false"
          ASYA_IS_END_ACTOR: "true"
          ASYA_RUNTIME_TIMEOUT: 1m20s
          MINE: kept
    """)
    assert (section.handler, section.handler_mode, section.kind) == ("shop.one", "envelope", "end")
    assert (section.validate_, section.timeout, section.env) == (False, 80.0, {"MINE": "kept"})


def test_14_variables_may_be_a_list_as_in_kubernetes() -> None:
    section = actor("""
        env:
          - {name: ASYA_HANDLER, value: shop.one}
          - {name: MINE, value: "1"}
    """)
    assert (section.handler, section.env) == ("shop.one", {"MINE": "1"})
    problem = problems_of(
        with_actor("""
            handler: shop.one
            env:
              - {name: MINE, value: "1"}
              - {name: MINE, value: "2"}
              - {name: KEY, valueFrom: {secretKeyRef: {name: a, key: b}}}
              - {name: AWS_REGION, value: here}
        """)
    )
    reserved = "'AWS_REGION' is reserved: the mesh sets the variables of AWS, Lambda, Powertools and Asya"
    assert problem == [
        f"5: actors.a.env: {reserved}",
        "7: actors.a.env[1]: MINE is set twice; keep one of them",
        "8: actors.a.env[2]: should have a name and a value; grant a secret under the key access instead",
    ]


@pytest.mark.rule("14.environment")
def test_14_the_bucket_and_the_prefixes_of_results_become_settings_of_the_mesh() -> None:
    loaded = load(
        with_actor("""
            handler: shop.one
            env: {ASYA_S3_BUCKET: asya-results, ASYA_S3_RESULTS_PREFIX: happy-asya/, ASYA_S3_ERRORS_PREFIX: error-asya/}
        """)
    )
    assert loaded.mesh.storage.results_bucket == "asya-results"
    sink = to_table(loaded).sink
    assert (sink.succeeded_prefix, sink.failed_prefix) == ("happy-asya/", "error-asya/")
    assert loaded.mesh.actors["a"].env == {}


@pytest.mark.rule("14.environment.end-actor")
def test_14_an_end_actor_keeps_the_variables_of_its_handler() -> None:
    loaded = load(
        with_actor("""
            handler: shop.one
            kind: end
            handler_mode: envelope-v1
            validate: false
            env: {ASYA_S3_BUCKET: own-results, ASYA_S3_ENDPOINT: "https://s3.example", ASYA_HANDLER_MODE: envelope}
        """)
    )
    assert loaded.mesh.storage.results_bucket is None
    section = loaded.mesh.actors["a"]
    assert section.handler_mode == "envelope-v1"
    assert section.env == {
        "ASYA_S3_BUCKET": "own-results",
        "ASYA_S3_ENDPOINT": "https://s3.example",
        "AWS_ENDPOINT_URL_S3": "https://s3.example",
    }


@pytest.mark.rule("14.environment")
def test_14_an_endpoint_becomes_the_variable_of_the_sdk() -> None:
    section = actor("""
        handler: shop.one
        env: {ASYA_S3_ENDPOINT: "https://s3.example"}
    """)
    assert section.env == {"AWS_ENDPOINT_URL_S3": "https://s3.example"}


def test_14_variables_of_the_defaults_apply_to_every_actor() -> None:
    mesh = load("""
        namespace: shop
        defaults: {env: {ASYA_HANDLER_MODE: envelope-v1, ASYA_RUNTIME_TIMEOUT: 5s, ASYA_S3_BUCKET: asya-results}}
        actors:
          a: {handler: shop.one}
          b: {handler: shop.one, handler_mode: payload}
    """).mesh
    assert [mesh.actors[name].handler_mode for name in "ab"] == ["envelope-v1", "payload"]
    assert (mesh.actors["a"].timeout, mesh.storage.results_bucket) == (5.0, "asya-results")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (
            "handler: shop.one\nenv: {ASYA_HANDLER: shop.two}",
            "5: actors.a.env.ASYA_HANDLER: is shop.two, but actors.a.handler is shop.one; keep one of them",
        ),
        (
            "handler: shop.one\ntimeout: 30s\nenv: {ASYA_RUNTIME_TIMEOUT: 1m}",
            "6: actors.a.env.ASYA_RUNTIME_TIMEOUT: is 1m, but actors.a.timeout is 30s; keep one of them",
        ),
        (
            "handler: shop.one\nhandler_mode: payload\nenv: {ASYA_HANDLER_MODE: envelope}",
            "6: actors.a.env.ASYA_HANDLER_MODE: is envelope, but actors.a.handler_mode is payload; keep one of them",
        ),
        (
            "handler: shop.one\nkind: end\nhandler_mode: envelope\nvalidate: false\nenv: {ASYA_IS_END_ACTOR: false}",
            "8: actors.a.env.ASYA_IS_END_ACTOR: is false, but kind is end; keep one of them",
        ),
        (
            "handler: shop.one\nenv: {ASYA_ENABLE_VALIDATION: maybe}",
            "5: actors.a.env.ASYA_ENABLE_VALIDATION: should be true or false; got 'maybe'",
        ),
        (
            "handler: shop.one\nenv: {ASYA_RUNTIME_TIMEOUT: 300}",
            "5: actors.a.env.ASYA_RUNTIME_TIMEOUT: should be a duration such as 5m0s or 90s; got 300",
        ),
        (
            "handler: shop.one\nenv: {ASYA_S3_SECRET_KEY: minioadmin}",
            "5: actors.a.env.ASYA_S3_SECRET_KEY: is refused: functions have roles instead of access keys; "
            "grant access under the key access",
        ),
        (
            "env: {ASYA_HANDLER: shop.three}",
            "4: actors.a.env.ASYA_HANDLER: functions/handlers/shop.py has no 'three'",
        ),
        (
            "handler: shop.one\nenv: {ASYA_RUNTIME_TIMEOUT: 2h}",
            "5: actors.a.env.ASYA_RUNTIME_TIMEOUT: 2h × a batch of 10 + 30s margin = 72030s, "
            "but the limit of Lambda is 900s; make it a heavy actor (spark)",
        ),
        ("env: {ASYA_HANDLER: shop.one, ASYA_NEW: 1}", "4: actors.a.env: 'ASYA_NEW' is reserved"),
    ],
)
def test_14_contradictions_and_mistakes_are_reported_at_their_line(keys: str, problem: str) -> None:
    problems = problems_of(with_actor(keys))
    assert len(problems) == 1
    assert problems[0].startswith(problem)


def test_14_equal_values_do_not_contradict() -> None:
    section = actor("handler: shop.one\ntimeout: 80s\nenv: {ASYA_HANDLER: shop.one, ASYA_RUNTIME_TIMEOUT: 1m20s}")
    assert (section.handler, section.timeout) == ("shop.one", 80.0)


def test_14_two_buckets_for_one_mesh_are_a_contradiction() -> None:
    assert problems_of("""
        namespace: shop
        actors:
          a: {handler: shop.one, env: {ASYA_S3_BUCKET: one-bucket}}
          b: {handler: shop.one, env: {ASYA_S3_BUCKET: other-bucket}}
    """) == [
        "4: actors.b.env.ASYA_S3_BUCKET: is other-bucket, but storage.results_bucket is one-bucket; keep one of them"
    ]


def test_14_handlers_of_whole_envelopes_get_their_variables_at_import() -> None:
    loaded = load(with_actor("handler: shop.one\nkind: end\nhandler_mode: envelope-v1\nvalidate: false"))
    assert handler_variables(to_table(loaded).actors["a"]) == {
        "ASYA_HANDLER": "shop.one",
        "ASYA_HANDLER_MODE": "envelope",
        "ASYA_ENABLE_VALIDATION": "false",
        "ASYA_IS_END_ACTOR": "true",
    }
    assert handler_variables(to_table(load(with_actor("handler: shop.one"))).actors["a"]) == {}


# --- operator settings


@pytest.mark.rule("14.operator-settings")
def test_14_replicas_and_queue_length_become_concurrency_and_batch_size() -> None:
    section = actor("""
        handler: shop.one
        enabled: true
        transport: sqs
        scaling: {enabled: true, minReplicas: 1, maxReplicas: 10, queueLength: 5}
    """)
    assert (section.provisioned, section.concurrency, section.batch.size) == (1, 10, 5)
    assert actor("handler: shop.one\nscaling: {minReplicas: 0}").provisioned == 0


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
    assert actor(f"handler: shop.one\nresources: {resources}").memory == memory


def test_14_a_workload_is_upgraded() -> None:
    section = actor("""
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


# --- the crew

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
        assert mesh.sink.endpoint == "https://s3.x"
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


# --- values


@pytest.mark.parametrize(
    ("text", "duration"),
    [("5m0s", "5m"), ("300s", "5m"), ("1h30m", "90m"), ("1.5s", "1500ms"), ("250ms", "250ms"), ("0s", "0s")],
)
def test_durations_of_go(text: str, duration: str) -> None:
    assert as_duration(text) == duration


@pytest.mark.parametrize("value", ["", "5", 5, "5m ", "m5", None, "-5s"])
def test_invalid_durations(value: Any) -> None:
    with pytest.raises(ValueError, match="should be a duration such as 5m0s"):
        as_duration(value)


def test_quantities_of_kubernetes() -> None:
    assert [as_megabytes(text) for text in ("64Mi", "1Gi", "1G", 128 * 2**20, "1.5Gi")] == [64, 1024, 954, 128, 1536]
    assert [as_cores(text) for text in ("200m", "0.5", 2)] == [0.2, 0.5, 2.0]
    for wrong in ("", "1X", True, None, "-1"):
        with pytest.raises(ValueError, match="should be an amount"):
            as_megabytes(wrong)
