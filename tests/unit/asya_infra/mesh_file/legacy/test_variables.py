"""The legacy environment variables of an actor become its settings (`protocol §14`)."""

import pytest

from asya_infra.mesh_file import to_table
from asya_infra.mesh_file.legacy.variables import handler_variables
from tests.unit.asya_infra.mesh_file.loading import load, load_actor, problems_of, with_actor

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.rule("14.environment")
def test_14_variables_of_an_actor_are_its_settings() -> None:
    section = load_actor("""
        env:
          ASYA_HANDLER: shop.one
          ASYA_HANDLER_MODE: envelope
          ASYA_ENABLE_VALIDATION: "false"
          ASYA_IS_END_ACTOR: "true"
          ASYA_RUNTIME_TIMEOUT: 1m20s
          MINE: kept
    """)
    assert (section.handler, section.handler_mode, section.kind) == ("shop.one", "envelope", "end")
    assert (section.validate, section.timeout, section.env) == (False, 80.0, {"MINE": "kept"})


def test_14_variables_may_be_a_list_as_in_kubernetes() -> None:
    section = load_actor("""
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
    section = load_actor("""
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
    section = load_actor("handler: shop.one\ntimeout: 80s\nenv: {ASYA_HANDLER: shop.one, ASYA_RUNTIME_TIMEOUT: 1m20s}")
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
