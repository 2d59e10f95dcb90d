"""The actor table that is made from a mesh file."""

from pathlib import Path

import pytest

from asya.protocol import mesh_table as table
from asya.protocol.mesh_table import decode_table, encode_table
from asya_infra.mesh_file import load_mesh, to_table
from tests.unit.asya_infra.mesh_file import loading


@pytest.fixture
def load(folder: Path):  # type: ignore[no-untyped-def]
    def loaded(text: str, stage: str = "") -> table.MeshTable:
        return to_table(loading.load(text, stage))

    return loaded


def test_defaults_are_those_of_the_table(load) -> None:  # type: ignore[no-untyped-def]
    mesh = load("namespace: shop\nactors: {a: {handler: shop.one}, b: {spark: {job: heavy.crunch}}}\n")
    assert mesh == table.MeshTable(
        namespace="shop",
        actors={
            "a": table.Actor(kind="handler", handler="shop.one", gives_one_frame=True),
            "b": table.Actor(
                kind="spark",
                spark=table.SparkJob(job="heavy.crunch"),
                timeout=900.0,
                batch=table.Batch(size=500, window=15.0),
            ),
            "x-sink": table.Actor(kind="crew", max_receives=50),
            "x-sump": table.Actor(kind="crew", max_receives=50),
            "x-index": mesh.actors["x-index"],  # tests/infra/test_result_index.py
        },
        sink=table.Sink(index=True),
        spark=table.SparkApplication(release="emr-spark-8.1.0"),
    )


@pytest.mark.rule("15.trace-id")
@pytest.mark.parametrize(
    ("telemetry", "share"),
    [("", None), ("telemetry: {xray: true, sample: 5%}", 0.05), ("telemetry: {otlp: 'http://c:1'}", None)],
)
def test_the_table_knows_the_share_of_traces_that_x_ray_gets(load, telemetry: str, share: float | None) -> None:  # type: ignore[no-untyped-def]
    mesh = load(f"namespace: shop\nactors: {{a: {{handler: shop.one}}}}\n{telemetry}\n")
    assert mesh.xray_share == share


def test_access_is_in_the_table_as_the_mesh_file_grants_it(load) -> None:  # type: ignore[no-untyped-def]
    statement = {"Effect": "Allow", "Action": ["sns:Publish"], "Resource": ["*"], "Condition": {}}
    mesh = load(
        "namespace: shop\nactors:\n  a:\n    handler: shop.one\n    access:\n"
        "      - {bucket: data, read: 'prices/*', write: ['out/*', 'log/*']}\n"
        "      - {secret: prices, read: true}\n"
        "      - {statement: {Action: 'sns:Publish', Resource: '*'}}\n"
    )
    bucket, secret, raw = mesh.actors["a"].access
    assert bucket == table.Access(kind="bucket", name="data", read=("prices/*",), write=("out/*", "log/*"))
    assert (secret.kind, secret.name) == ("secret", "prices")
    assert raw == table.Access(kind="statement", statement=statement)
    assert decode_table(encode_table(mesh)).actors["a"].access == mesh.actors["a"].access


@pytest.mark.rule("4.entry.claim")
@pytest.mark.parametrize(
    ("settings", "results"),
    [
        ("storage: {retention: {results: 90d}}", 90 * 86400.0),
        ("storage: {retention: {results: none}}", None),
        # The mesh does not know how long other buckets keep objects.
        ("storage: {results_bucket: archive, retention: {results: 90d}}", None),
        ("storage: {retention: {results: 90d}}\nsink: {endpoint: 'https://s3.example.com'}", None),
    ],
)
def test_the_retention_of_results_is_known_of_the_own_bucket(load, settings: str, results: float | None) -> None:  # type: ignore[no-untyped-def]
    mesh = load(f"namespace: shop\nactors: {{a: {{handler: shop.one}}}}\n{settings}\n")
    assert mesh.retention.results == results


def test_the_table_survives_encoding(load) -> None:  # type: ignore[no-untyped-def]
    mesh = load("namespace: shop\nactors: {a: {handler: shop.one}}\n")
    assert decode_table(encode_table(mesh)) == mesh
    assert encode_table(mesh) == encode_table(decode_table(encode_table(mesh)))


@pytest.mark.rule("4.stage")
def test_a_stage_is_part_of_the_namespace(load) -> None:  # type: ignore[no-untyped-def]
    assert load("namespace: shop\nactors: {a: {handler: shop.one}}\n", "test").namespace == "shop-test"


def test_mappings_in_defaults_are_merged_and_everything_else_is_replaced(load) -> None:  # type: ignore[no-untyped-def]
    actors = load("""
        namespace: shop
        defaults:
          timeout: 10s
          batch: {size: 4, window: 2s}
          env: {ONE: "1", TWO: no}
          resiliency: {policies: {later: {max_attempts: 3}}, rules: [{errors: [OSError], policy: later}]}
        actors:
          a: {handler: shop.one}
          b:
            spark: {job: heavy.crunch}
            timeout: 5m
            batch: {size: 100}
            env: {TWO: 2}
            resiliency: {policies: {never: {}}, rules: [{errors: KeyError, policy: never}]}
    """).actors
    assert (actors["a"].timeout, actors["b"].timeout) == (10.0, 300.0)
    assert actors["b"].batch == table.Batch(size=100, window=2.0)
    assert actors["b"].spark.env == {"ONE": "1", "TWO": "2"}
    assert actors["b"].resiliency.policies.keys() == {"later", "never"}
    assert actors["b"].resiliency.rules == (table.Rule(errors=("KeyError",), policy="never"),)
    assert actors["a"].resiliency.rules == (table.Rule(errors=("OSError",), policy="later"),)


@pytest.mark.parametrize(
    ("keys", "timeout", "batch"),
    [
        ("", 900.0, table.Batch(size=500, window=15.0)),
        ("batch: {size: 20}", 900.0, table.Batch(size=20, window=15.0)),
        ("batch: {window: 0s}, timeout: 1h", 3600.0, table.Batch(size=500, window=0.0)),
    ],
)
def test_a_heavy_actor_has_defaults_of_its_own(  # type: ignore[no-untyped-def]
    load, keys: str, timeout: float, batch: table.Batch
) -> None:
    actors = load(f"""
        namespace: shop
        actors:
          light: {{handler: shop.one}}
          heavy: {{spark: {{job: heavy.crunch}}, {keys}}}
          short: {{spark: {{job: heavy.crunch, max_run: 10m}}}}
    """).actors
    assert (actors["heavy"].timeout, actors["heavy"].batch) == (timeout, batch)
    assert (actors["light"].timeout, actors["light"].batch) == (30.0, table.Batch(size=10))
    assert actors["short"].timeout == 600.0  # max_run
    assert (actors["x-index"].timeout, actors["x-index"].batch) == (1800.0, table.Batch(size=10))


def test_a_tool_with_a_heavy_actor_in_its_route_has_two_hours(load) -> None:  # type: ignore[no-untyped-def]
    tools = load("""
        namespace: shop
        actors:
          a: {handler: shop.one, can_send_to: "*"}
          b: {spark: {job: heavy.crunch}, can_send_to: "*"}
        tools:
          a: {}
          b: {}
          both: {route: [a, b]}
          short: {route: [a, b], timeout: 5m}
    """).tools
    timeouts = {name: tool.timeout for name, tool in tools.items()}
    assert timeouts == {"a": 300.0, "b": 7200.0, "both": 7200.0, "short": 300.0}


def test_all_keys_of_a_heavy_actor(load) -> None:  # type: ignore[no-untyped-def]
    job = (
        load("""
        namespace: shop
        actors:
          b:
            spark:
              job: heavy.crunch_all
              driver: {cores: 2, memory: 4g, disk: 30g}
              executors: {cores: 4, memory: 8g, min: 1, max: 3}
              conf: {spark.sql.shuffle.partitions: 8, spark.sql.ansi.enabled: false, a: "x"}
              archives: ["s3://b/k.zip#k"]
              max_run: 2h
              max_runs: 1
              priority: 5
              payload_schema: "a INT"
            env: {MODE: fast}
    """)
        .actors["b"]
        .spark
    )
    assert job == table.SparkJob(
        job="heavy.crunch_all",
        driver=table.WorkerSize(cores=2, memory_mb=4096, disk_gb=30),
        executor=table.WorkerSize(cores=4, memory_mb=8192),
        min_executors=1,
        max_executors=3,
        conf={"spark.sql.shuffle.partitions": "8", "spark.sql.ansi.enabled": "false", "a": "x"},
        archives=("s3://b/k.zip#k",),
        max_run=7200.0,
        max_runs=1,
        priority=5,
        shape="dataframe",
        payload_schema="a INT",
        env={"MODE": "fast"},
    )


@pytest.mark.rule("10.size")
def test_the_table_has_the_sizes_in_their_order(load) -> None:  # type: ignore[no-untyped-def]
    job = (
        load("""
        namespace: shop
        actors:
          b:
            spark:
              job: heavy.crunch
              driver: {memory: 4g}
              conf: {a: 1}
              size_by: /rows
              sizes:
                small: {up_to: 1000000}
                large: {executors: {memory: 7g, max: 100}, conf: {b: true}}
    """)
        .actors["b"]
        .spark
    )
    assert job is not None
    driver = table.WorkerSize(memory_mb=4096)
    assert job.size_by == "/rows"
    assert job.sizes == (
        table.JobSize(name="small", up_to=1e6, driver=driver, conf={"a": "1"}),
        table.JobSize(
            name="large",
            driver=driver,
            executor=table.WorkerSize(memory_mb=7168),
            max_executors=15,
            conf={"a": "1", "b": "true"},
        ),
    )


ROUTES = """
    namespace: shop
    actors:
      a: {handler: shop.one, resiliency: {policies: {later: {then_route: [c, d]}}}}
      b: {handler: shop.one}
      c: {handler: shop.one}
      d: {handler: shop.one, can_send_to: [a]}
      e: {handler: shop.one, can_send_to: "*"}
      f: {handler: shop.one}
    tools:
      one: {route: [a, b, c, e]}
      two: {route: [b, a, d]}
"""


@pytest.mark.rule("1.who-may-be-sent-to")
@pytest.mark.parametrize(
    ("actor", "targets"),
    [
        ("a", ("b", "c", "d")),  # the next in both routes, and the first of its detour
        ("b", ("a", "c")),
        ("c", ("d", "e")),  # the next in the detour that leads over it, and in the tool's route
        ("d", ("a",)),  # declared
        ("e", None),  # declared: everywhere
        ("f", None),  # in no route
    ],
)
def test_the_targets_of_an_actor(load, actor: str, targets: tuple[str, ...] | None) -> None:  # type: ignore[no-untyped-def]
    assert load(ROUTES).actors[actor].can_send_to == targets


def test_a_tool_without_a_route_is_the_actor_of_its_name(load) -> None:  # type: ignore[no-untyped-def]
    tools = load("namespace: shop\nactors: {a: {handler: shop.one}}\ntools: {a: {timeout: 1m}}\n").tools
    assert tools["a"] == table.Tool(description="", route=("a",), timeout=60.0)


def test_the_agent_section_is_in_the_table(load) -> None:  # type: ignore[no-untyped-def]
    mesh = "namespace: shop\nactors: {a: {handler: shop.one}}\ntools: {a: {}}\n"
    assert load(mesh).agent == table.Agent()
    agent = load(mesh + "agent: {name: Shop, version: '2', skills: [{id: a, tags: [orders]}]}\n").agent
    assert agent == table.Agent(name="Shop", version="2", skills=({"id": "a", "tags": ["orders"]},))


@pytest.mark.parametrize(
    ("sink", "prefixes"),
    [
        ("{}", ("succeeded/", "failed/")),
        ("{layout: by-time}", ("happy-asya/", "error-asya/")),
        ("{prefixes: {succeeded: good}}", ("good/", "failed/")),
        ("{layout: by-time, prefixes: {failed: bad/}}", ("happy-asya/", "bad/")),
    ],
)
def test_sink_prefixes(load, sink: str, prefixes: tuple[str, str]) -> None:  # type: ignore[no-untyped-def]
    mesh = load(f"namespace: shop\nactors: {{a: {{handler: shop.one}}}}\nsink: {sink}\n")
    assert (mesh.sink.succeeded_prefix, mesh.sink.failed_prefix) == prefixes


def test_plain_scalars_follow_yaml_1_2(load) -> None:  # type: ignore[no-untyped-def]
    job = (
        load("""
        namespace: shop
        actors: {b: {spark: {job: heavy.crunch, conf: {a: no, b: on, c: 2024-01-01, d: 1:30, e: 010, f: true}}}}
    """)
        .actors["b"]
        .spark
    )
    assert job.conf == {"a": "no", "b": "on", "c": "2024-01-01", "d": "1:30", "e": "010", "f": "true"}


@pytest.mark.parametrize(
    ("jwt", "calls"),
    [
        ("", ()),
        ("jwt: {issuer: https://who, audience: us}", ("tasks", "tools", "mcp", "a2a", "streams")),
        ("jwt: {issuer: https://who, audience: us, calls: [mcp]}", ("mcp",)),
    ],
)
def test_which_calls_take_tokens(load, jwt: str, calls: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    assert (
        load(f"namespace: shop\nactors: {{a: {{handler: shop.one}}}}\ngateway: {{{jwt}}}\n").gateway.token_calls
        == calls
    )


@pytest.mark.parametrize(
    ("application", "option", "runs"),
    [
        ("{max_vcpu: 20}", None, None),  # EMR Serverless queues the runs
        ("{max_vcpu: 20}", "00other", 4),
        ("{id: 00abc}", None, 3),
        ("{id: 00abc, max_concurrent_runs: 8}", None, 8),
    ],
)
def test_the_dispatcher_limits_the_runs_of_an_existing_application(
    tmp_path: Path, application: str, option: str | None, runs: int | None
) -> None:
    (tmp_path / "heavy.py").write_text("def crunch(spark, payload): ...\n")
    (tmp_path / "mesh.yaml").write_text(
        f"namespace: shop\njobs: .\nactors: {{b: {{spark: {{job: heavy.crunch}}}}}}\nspark: {{application: {application}}}\n"
    )
    made = to_table(load_mesh(tmp_path / "mesh.yaml"), existing_application=option)
    assert made.spark.max_concurrent_runs == runs


@pytest.mark.rule("10.priority")
def test_10_with_priorities_the_dispatcher_limits_the_runs_of_any_application(load) -> None:  # type: ignore[no-untyped-def]
    made = load("""
        namespace: shop
        actors:
          a: {spark: {job: heavy.crunch}}
          b: {spark: {job: heavy.crunch, priority: 1}}
    """)
    assert made.spark.max_concurrent_runs == 3


@pytest.mark.parametrize(
    ("application", "option", "release"),
    [
        ("{}", None, "emr-spark-8.1.0"),
        ("{release: emr-7.11.0}", None, "emr-7.11.0"),
        ("{release: emr-7.11.0}", "00other", None),
        ("{id: 00abc}", None, None),
    ],
)
def test_the_release_of_an_existing_application_is_unknown(
    tmp_path: Path, application: str, option: str | None, release: str | None
) -> None:
    (tmp_path / "heavy.py").write_text("def crunch(spark, payload): ...\n")
    (tmp_path / "mesh.yaml").write_text(
        f"namespace: shop\njobs: .\nactors: {{b: {{spark: {{job: heavy.crunch}}}}}}\nspark: {{application: {application}}}\n"
    )
    assert to_table(load_mesh(tmp_path / "mesh.yaml"), existing_application=option).spark.release == release


def test_executors_beyond_the_application_are_clamped(tmp_path: Path) -> None:
    (tmp_path / "heavy.py").write_text("def crunch(spark, payload): ...\n")
    (tmp_path / "mesh.yaml").write_text(
        "namespace: shop\njobs: .\nactors: {b: {spark: {job: heavy.crunch, executors: {max: 64}}}}\n"
    )
    spark = to_table(load_mesh(tmp_path / "mesh.yaml")).actors["b"].spark
    assert spark is not None
    assert spark.max_executors == 15


@pytest.mark.rule("11.sink.one-frame")
def test_lists_that_fan_out_give_several_frames(load) -> None:  # type: ignore[no-untyped-def]
    mesh = load("namespace: shop\nactors: {a: {handler: shop.one}, b: {handler: shop.one, fan_out_lists: true}}\n")
    assert (mesh.actors["a"].gives_one_frame, mesh.actors["b"].gives_one_frame) == (True, False)
