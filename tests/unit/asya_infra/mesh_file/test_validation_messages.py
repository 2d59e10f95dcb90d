"""The problems of invalid mesh files, each in one line with file, line and key. `tests/infra` has the valid files."""

from pathlib import Path
from textwrap import dedent

import pytest

from asya_infra.mesh_file import MeshFileError, load_mesh

HANDLERS = """
from somewhere import everything as imported
def one(payload): return payload
async def many(payload): yield payload
class Shop:
    def sell(self, payload): return payload
class Bigger(Shop): ...
try:
    from fast import quick
except ImportError:
    def quick(payload): return payload
renamed = one
"""
JOBS = "def crunch(spark, payload): return payload\ndef lonely(spark): ...\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "functions/handlers").mkdir(parents=True)
    (tmp_path / "functions/handlers/shop.py").write_text(HANDLERS)
    (tmp_path / "spark_jobs").mkdir()
    (tmp_path / "spark_jobs/heavy.py").write_text(JOBS)
    return tmp_path


def mistakes(text: str, stage: str = "") -> list[str]:
    """Return the problems of a mesh file without the file name."""
    Path("mesh.yaml").write_text(dedent(text).lstrip("\n"))
    try:
        load_mesh(Path("mesh.yaml"), stage)
    except MeshFileError as error:
        return [line.removeprefix("mesh.yaml:") for line in str(error).splitlines()]
    return []


def actor(keys: str, name: str = "a") -> list[str]:
    """Return the problems of a light actor with these keys in line 4."""
    return mistakes(f"namespace: shop\nactors:\n  {name}:\n    {{handler: shop.one, {keys}}}\n")


def heavy(keys: str, spark: str = "", more: str = "") -> list[str]:
    """Return the problems of a heavy actor."""
    return mistakes(f"namespace: shop\nactors:\n  a:\n    {{spark: {{job: heavy.crunch, {spark}}}, {keys}}}\n{more}")


def test_the_smallest_mesh(folder: Path) -> None:
    assert mistakes("namespace: shop\nactors:\n  a: {handler: shop.one}\n") == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1: should be a mapping with `namespace` and `actors`; the file is empty"),
        ("- a\n- b\n", "1: should be a mapping with `namespace` and `actors`; got a list"),
        ("namespace: shop\n", "1: actors: missing"),
        ("namespace: shop\nactors: {}\n", "2: actors: should not be empty"),
        ("namespace: shop\nactors: [a]\n", "2: actors: should be a mapping; got a list"),
        ("namespace: shop\nactors:\n  a:\n", "3: actors.a: should be a mapping; got nothing"),
        ("a: {b: [1, 2}\n", "1: not valid YAML: while parsing a flow sequence expected ',' or ']', but got '}'"),
        ("a: 1\n---\nb: 2\n", "2: not valid YAML: expected a single document in the stream but found another document"),
        ("namespace: shop\nnamespace: other\n", "2: namespace: duplicate key, first in line 1; keep one of them"),
        ("a: &x [*x]\n", "1: not valid YAML: nested too deeply"),
        ("a: !!python/object:os.system {}\n", "1: a: unknown key"),
    ],
)
def test_invalid_files(folder: Path, text: str, problem: str) -> None:
    assert problem in mistakes(text)


def test_aliases_cannot_expand_without_limit(folder: Path) -> None:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 12))
    assert "too many values" in mistakes(f"l0: &l0 [{', '.join('xxxxxxxxxx')}]\n{levels}")[0]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("namespace: caf\xe9\n".encode("latin-1"))
    for name, problem in (("none.yaml", "there is no such file"), (".", "cannot be read"), ("latin.yaml", "not UTF-8")):
        with pytest.raises(MeshFileError, match=problem):
            load_mesh(tmp_path / name)


@pytest.mark.rule("8.unknown-policy")
@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("timeot: 3s", "4: actors.a.timeot: unknown key; did you mean 'timeout'?"),
        ("colour: red", "4: actors.a.colour: unknown key"),
        ("timeout: 30", "4: actors.a.timeout: should be a duration such as 500ms, 30s, 10m, 2h or 7d; got 30"),
        ("timeout: soon", "4: actors.a.timeout: should be a duration such as 500ms, 30s, 10m, 2h or 7d; got 'soon'"),
        ("timeout: 0s", "4: actors.a.timeout: should be more than 0s; got '0s'"),
        ("memory: 64", "4: actors.a.memory: should be at least 128; got 64"),
        ("memory: lots", "4: actors.a.memory: should be a size such as 512 (megabytes), 256k or 4g; got 'lots'"),
        ("concurrency: 1", "4: actors.a.concurrency: should be at least 2; got 1"),
        ("concurrency: 1001", "4: actors.a.concurrency: should be at most 1000; got 1001"),
        (
            "reserved: 10",
            "4: actors.a.reserved: is less than concurrency (50), so messages would use up receives; set both to the same",
        ),
        ("pollers: {min: 1}", "4: actors.a.pollers.min: should be at least 2; got 1"),
        ("pollers: {min: 30}", "4: actors.a.pollers.min: is more than max (20)"),
        (
            "concurrency: 20, pollers: {}",
            "4: actors.a.concurrency: conflicts with pollers: Lambda takes one of them; remove this key",
        ),
        ("concurrency: many", "4: actors.a.concurrency: should be a whole number; got 'many'"),
        (
            "frames: bufered",
            "4: actors.a.frames: should be 'streamed' or 'buffered'; got 'bufered'; did you mean 'buffered'?",
        ),
        ("deduplicate: perhaps", "4: actors.a.deduplicate: should be true or false; got 'perhaps'"),
        (
            "env: {A: b}",
            "4: actors.a.env: 'A' is not a valid variable name: use a letter, then one or more letters, digits or _",
        ),
        (
            "env: {AWS_REGION: b}",
            "4: actors.a.env: 'AWS_REGION' is reserved: the mesh sets the variables of AWS, Lambda, Powertools and Asya",
        ),
        ("spark: {job: heavy.crunch}", "4: actors.a.spark: has handler and spark; keep one of them"),
        ("kind: pauze", "4: actors.a.kind: should be 'fan_in', 'pause' or 'end'; got 'pauze'; did you mean 'pause'?"),
        ("validate: false", "4: actors.a.validate: only a user's own end actor (kind: end) may turn off validation"),
        ("pause: {}", "4: actors.a.pause: needs kind: pause"),
        (
            "batch: {size: 11}, timeout: 1s",
            "4: actors.a.batch: a size of 11 (more than 10) needs a window of 1s or more",
        ),
        ("batch: {window: 301s}", "4: actors.a.batch.window: should be at most 300s for a light actor"),
        ("batch: {window: 500ms}", "4: actors.a.batch.window: should be whole seconds for a light actor"),
        (
            "timeout: 2m",
            "4: actors.a.timeout: 2m × a batch of 10 + 30s margin = 1230s, but the limit of Lambda is 900s; "
            "set batch.size to 7 or less, or shorten the timeout",
        ),
        (
            "timeout: 15m, batch: {size: 1}",
            "4: actors.a.timeout: 15m × a batch of 1 + 30s margin = 930s, but the limit of Lambda is 900s; "
            "make it a heavy actor (spark)",
        ),
        (
            "resiliency: {rules: [{errors: [ValueError], policy: later}]}",
            "4: actors.a.resiliency.rules[0].policy: there is no policy 'later'; this actor has none",
        ),
        (
            "resiliency: {policies: {later: {}}, rules: [{errors: ValueError, policy: latr}]}",
            "4: actors.a.resiliency.rules[0].policy: there is no policy 'latr'; this actor has later; did you mean 'later'?",
        ),
        (
            "resiliency: {policies: {later: {then_route: [a, b]}}}",
            "4: actors.a.resiliency.policies.later.then_route[1]: there is no actor 'b'",
        ),
        ("can_send_to: [b]", "4: actors.a.can_send_to[0]: there is no actor 'b'"),
        ("can_send_to: [a, '*']", "4: actors.a.can_send_to[1]: '*' means every actor; remove it, or all others"),
        (
            "access: [{read: x}]",
            "4: actors.a.access[0]: has no resource; an entry needs exactly one of bucket, table, secret and statement",
        ),
        (
            "access: [{bucket: data}]",
            "4: actors.a.access[0]: grants nothing; add read or write patterns, such as read: raw/*",
        ),
        (
            "access: [{bucket: data, read: ../x}]",
            "4: actors.a.access[0].read: should be a relative pattern such as raw/*; got '../x'",
        ),
        (
            "access: [{bucket: data, read: /x}]",
            "4: actors.a.access[0].read: should be a relative pattern such as raw/*; got '/x'",
        ),
        (
            "access: [{secret: s, read: x}]",
            "4: actors.a.access[0].read: should be true, because a secret has no parts; got 'x'",
        ),
    ],
)
def test_keys_of_a_light_actor(folder: Path, keys: str, problem: str) -> None:
    assert actor(keys) == [problem]


@pytest.mark.parametrize(
    ("keys", "spark", "more", "problem"),
    [
        ("", "jop: x", "", "4: actors.a.spark.jop: unknown key; did you mean 'job'?"),
        ("batch: {window: 901s}", "", "", "4: actors.a.batch.window: should be at most 900s for a heavy actor"),
        ("timeout: 7h", "", "", "4: actors.a.timeout: is longer than the time limit of a job run (spark.max_run, 6h)"),
        ("", "executors: {min: 3, max: 2}", "", "4: actors.a.spark.executors.min: is more than max (2)"),
        ("", "driver: {cores: 3}", "", "4: actors.a.spark.driver.cores: should be 1, 2, 4, 8 or 16; got 3"),
        (
            "",
            "driver: {memory: 8g}",
            "",
            "4: actors.a.spark.driver.memory: 8192 MB + 819 MB overhead exceeds the 8192 MB of a worker with 1 cores",
        ),
        (
            "",
            "py_files: [x.zip]",
            "",
            "4: actors.a.spark.py_files[0]: should be an s3:// address; got 'x.zip'; put code into the jobs folder instead",
        ),
        (
            "",
            "executors: {cores: 4, memory: 2g}",
            "spark: {application: {max_vcpu: 4, max_memory: 64g}}",
            "4: actors.a.spark.executors: a job run needs 5 vCPU to start, but the application has 4 "
            "(spark.application.max_vcpu)",
        ),
        (
            "",
            "",
            "spark: {application: {id: 00abc, release: emr-spark-8.1.0}}",
            "5: spark.application.release: conflicts with id: an existing application has its own settings; remove this key",
        ),
        (
            "",
            "executors: {cores: 4}",
            "spark: {application: {id: 00abc, max_vcpu: 4, max_memory: 64g}}",
            "4: actors.a.spark.executors: a job run needs 5 vCPU to start, but the application has 4 "
            "(spark.application.max_vcpu)",
        ),
        (
            "",
            "executors: {memory: 6g}",
            "spark: {application: {max_memory: 8g}}",
            "4: actors.a.spark.executors: a job run needs 10 GB of memory to start, but the application has 8 GB "
            "(spark.application.max_memory)",
        ),
        (
            "",
            "executors: {min: 16, max: 20}",
            "",
            "4: actors.a.spark.executors: a job run needs 17 vCPU to start, but the application has 16 "
            "(spark.application.max_vcpu)",
        ),
        ("", "max_run: 8d", "", "4: actors.a.spark.max_run: should be at most 7d, the limit of EMR Serverless"),
        (
            "",
            'executors: {memory: 4g}, conf: {spark.executor.memoryOverhead: "5g"}',
            "",
            "4: actors.a.spark.executors.memory: 4096 MB + 5120 MB overhead exceeds the 8192 MB of a worker with 1 cores",
        ),
        (
            "",
            'driver: {memory: 6g}, conf: {spark.driver.memoryOverheadFactor: "0.5"}',
            "",
            "4: actors.a.spark.driver.memory: 6144 MB + 3072 MB overhead exceeds the 8192 MB of a worker with 1 cores",
        ),
        (
            "",
            "conf: {spark.dynamicAllocation.maxExecutors: 40}",
            "",
            "4: actors.a.spark.conf.spark.dynamicAllocation.maxExecutors: has a key of its own; set executors.max instead",
        ),
        (
            "access: [{bucket: data, read: [lib/*]}]",
            'conf: {spark.jars: "s3://my-jars/a.jar"}',
            "",
            "4: actors.a.spark.conf.spark.jars: the job may not read s3://my-jars/a.jar; add to access: "
            '{bucket: my-jars, read: ["a.jar"]}',
        ),
    ],
)
def test_keys_of_a_heavy_actor(folder: Path, keys: str, spark: str, more: str, problem: str) -> None:
    assert heavy(keys, spark, more) == [problem]


@pytest.mark.parametrize(
    ("access", "more", "address"),
    [
        ("{bucket: my-jars, read: [lib/*]}", "", "s3://my-jars/lib/a.jar"),
        ("{bucket: data, read: [lib/*]}", "storage: {data_bucket: shop-data}", "s3://shop-data/lib/a.jar"),
        ("{bucket: data, read: [lib/*]}", "", "s3://asya-shop-123456789012-eu-central-1/data/lib/a.jar"),
        ("{statement: {Effect: Allow, Action: 's3:GetObject', Resource: '*'}}", "", "s3://my-jars/a.jar"),
        ("{bucket: my-jars, read: [lib/*]}", "", "local:///usr/lib/a.jar"),
    ],
)
def test_a_jar_that_the_actor_may_read(folder: Path, access: str, more: str, address: str) -> None:
    assert heavy(f"access: [{access}]", f"conf: {{spark.jars: '{address}'}}", more) == []


def test_an_index_that_does_not_fit(folder: Path) -> None:
    small = "driver: {memory: 1g}, executors: {memory: 1g}"
    assert heavy("", small, "sink: {index: false}\nspark: {application: {max_memory: 5g}}") == []
    assert heavy("", small, "spark: {application: {max_memory: 5g}}") == [
        "5: spark.application: has no room for one job run of x-index, which needs 2 vCPU and 6 GB; "
        "raise max_vcpu or max_memory"
    ]


def test_a_heavy_actor_may_take_long_and_many(folder: Path) -> None:
    assert heavy("timeout: 30m, batch: {size: 10000, window: 5m}") == []


@pytest.mark.parametrize(
    ("handler", "problem"),
    [
        ("shop.one", None),
        ("shop.many", None),
        ("shop.Shop.sell", None),
        ("shop.Bigger.sell", None),  # inherited: only running it could tell
        ("shop.quick", None),
        ("shop.renamed", None),
        ("shop.imported", None),
        ("shop.tow", "functions/handlers/shop.py has no 'tow'"),
        ("shop.mny", "functions/handlers/shop.py has no 'mny'; did you mean 'many'?"),
        ("shp.one", "there is no module 'shp' in functions/handlers; did you mean 'shop'?"),
        ("shop.Shop", "'Shop' in functions/handlers/shop.py is a class; add the name of a method, as in Shop.method"),
        ("shop.Shop.buy", "class Shop in functions/handlers/shop.py has no 'buy'"),
        ("shop.one.two", "'one' in functions/handlers/shop.py is a function and has no 'two'"),
        ("shop", "should have the form module.function or module.Class.method; got 'shop'"),
        ("../shop.one", "should have the form module.function or module.Class.method; got '../shop.one'"),
    ],
)
def test_handlers_are_found_without_running_code(folder: Path, handler: str, problem: str | None) -> None:
    expected = [f"3: actors.a.handler: {problem}"] if problem else []
    assert mistakes(f"namespace: shop\nactors:\n  a: {{handler: {handler}}}\n") == expected


def test_a_handler_with_a_syntax_error(folder: Path) -> None:
    (folder / "functions/handlers/broken.py").write_text("def one(payload)\n    return 1\n")
    (problem,) = mistakes("namespace: shop\nactors:\n  a: {handler: broken.one}\n")
    assert problem == "3: actors.a.handler: functions/handlers/broken.py:1 is not valid Python: expected ':'"


def test_a_module_in_place_of_a_function(folder: Path) -> None:
    (folder / "functions/handlers/flights").mkdir()
    (folder / "functions/handlers/flights/__init__.py").touch()
    (folder / "functions/handlers/flights/inspect.py").touch()
    (problem,) = mistakes("namespace: shop\nactors:\n  a: {handler: flights.inspect}\n")
    assert "flights.inspect" in problem or "has no 'inspect'" in problem


def test_jobs(folder: Path) -> None:
    (problem,) = mistakes("namespace: shop\nactors:\n  a: {spark: {job: heavy.lonely}}\n")
    assert (
        problem
        == "3: actors.a.spark.job: 'heavy.lonely' (spark_jobs/heavy.py:2) should take two arguments: spark, payload"
    )


def test_folders(folder: Path) -> None:
    (problem,) = mistakes("namespace: shop\ncode: elsewhere\nactors:\n  a: {handler: shop.one}\n")
    assert problem == "2: code: there is no folder elsewhere"
    (folder / "functions/handlers/asya").mkdir()
    (problem,) = mistakes("namespace: shop\nactors:\n  a: {handler: shop.one}\n")
    assert problem.startswith("1: code: functions/handlers/asya would hide a file of the mesh with the same name")


@pytest.mark.rule("1.names")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("A", "3: actors.A: actor name 'A' is not a DNS label: lower-case letters, digits and inner hyphens only"),
        ("x-sink", "3: actors.x-sink: the name 'x-sink' is reserved for the mesh's own actors; rename the actor"),
        ("x-fan-in", "3: actors.x-fan-in: the name 'x-fan-in' is reserved for the mesh's own actors; rename the actor"),
        (
            "happy-end",
            "3: actors.happy-end: the name 'happy-end' is reserved for the mesh's own actors; rename the actor",
        ),
    ],
)
def test_names(folder: Path, name: str, problem: str) -> None:
    assert actor("", name) == [problem]


def test_a_quorum_needs_partial_sets(folder: Path) -> None:
    problem = mistakes("namespace: shop\nactors:\n  x-fan-in: {kind: fan_in, fan_in: {quorum: 2}}\n")
    assert problem == ["3: actors.x-fan-in.fan_in: has a quorum, which needs on_failure: partial"]


def test_crew_actors_that_may_be_redefined(folder: Path) -> None:
    assert mistakes("namespace: shop\nactors:\n  x-fan-in: {kind: fan_in, fan_in: {timeout: 2h}}\n") == []
    assert mistakes("namespace: shop\nactors:\n  x-pause: {kind: pause, pause: {prompt: Sure}}\n") == []


@pytest.mark.rule("4.80-characters")
def test_queue_names_have_80_characters_at_most(folder: Path) -> None:
    fits, too_long = "a" * 63, "b" * 63
    assert mistakes(f"namespace: shops\nactors:\n  {fits}: {{handler: shop.one}}\n") == []
    (problem,) = mistakes(f"namespace: shopping\nactors:\n  {too_long}: {{handler: shop.one}}\n")
    assert "has 81 characters, but the limit of SQS is 80; make the actor's name or the namespace 1 shorter" in problem


@pytest.mark.rule("4.stage")
def test_a_stage_counts_in_names(folder: Path) -> None:
    text = f"namespace: shop\nactors:\n  {'a' * 60}: {{handler: shop.one}}\n"
    assert mistakes(text) == []
    assert "asya-shop-testing-" in mistakes(text, stage="testing")[0]
    assert "namespace name 'shop-Test' is not a DNS label" in mistakes(text, stage="Test")[0]


@pytest.mark.rule("4.collisions")
def test_queues_that_would_collide(folder: Path) -> None:
    (problem,) = mistakes("namespace: shop\nactors:\n  foo: {handler: shop.one}\n  foo-dlq: {handler: shop.one}\n")
    assert (
        problem == "4: actors.foo-dlq: its queue 'asya-shop-foo-dlq' is also a queue of actor 'foo'; rename one of them"
    )


@pytest.mark.rule("14.end-actor")
@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (
            "",
            {
                "an end actor (kind: end) needs handler_mode: envelope, or envelope-v1",
                "an end actor (kind: end) needs validate: false",
            },
        ),
        ("handler_mode: envelope-v1, validate: false", set()),
        ("handler_mode: envelope, validate: false", set()),
        ("handler_mode: envelope, validate: true", {"an end actor (kind: end) needs validate: false"}),
    ],
)
def test_a_users_own_end_actor(folder: Path, keys: str, problem: set[str]) -> None:
    assert {line.split(": ", 2)[2] for line in actor(f"kind: end, {keys}")} == problem


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        ("{route: [b]}", "4: tools.t.route[0]: there is no actor 'b'"),
        ("{route: [aa]}", "4: tools.t.route[0]: there is no actor 'aa'; did you mean 'a'?"),
        (
            "{route: [a, x-sink]}",
            "4: tools.t.route[1]: 'x-sink' is reserved; "
            "a route may contain these actors of the mesh: x-checkpoint, x-fan-in, x-pause, x-resume",
        ),
        ("{route: [a], timeout: 1s}", "4: tools.t.timeout: should be at least 2s; got '1s'"),
        ("{}", "4: tools.t.route: missing, and there is no actor 't' to use as the route"),
        ("{route: []}", "4: tools.t.route: should not be empty"),
        ("{route: [a], input_schema: {minimum: 1e999}}", "4: tools.t.input_schema.minimum: not a finite number"),
        (
            "{route: [a], input_schema: {type: objct}}",
            "4: tools.t.input_schema.type: not a valid JSON Schema: "
            "\"objct\" is not valid under any of the schemas listed in the 'anyOf' keyword",
        ),
        (
            "{route: [a], input_schema: {$ref: '#/$defs/none'}}",
            "4: tools.t.input_schema: not a valid JSON Schema: Pointer '/$defs/none' does not exist",
        ),
    ],
)
def test_tools(folder: Path, tool: str, problem: str) -> None:
    text = f"namespace: shop\nactors:\n  a: {{handler: shop.one}}\ntools: {{t: {tool}}}\n"
    assert mistakes(text) == [problem]


@pytest.mark.rule("13.mcp.tools")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a b", "4: tools.a b: a tool name should have 1 to 128 letters, digits, '_', '-' or '.'"),
        ("ü", "4: tools.ü: a tool name should have 1 to 128 letters, digits, '_', '-' or '.'"),
        ("wait_for_task", "4: tools.wait_for_task: the gateway has its own tool 'wait_for_task'; rename this one"),
    ],
)
def test_names_of_tools(folder: Path, name: str, problem: str) -> None:
    text = f"namespace: shop\nactors:\n  a: {{handler: shop.one}}\ntools: {{{name}: {{route: [a]}}}}\n"
    assert mistakes(text) == [problem]


@pytest.mark.rule("13.a2a.card")
@pytest.mark.parametrize(
    ("skills", "problem"),
    [
        ("{id: order}", []),
        ("{id: ordr}", ["5: agent.skills[0].id: there is no tool 'ordr'; did you mean 'order'?"]),
        ("{name: Order}", ["5: agent.skills[0]: has no id; set it to the name of a tool"]),
    ],
)
def test_skills_of_the_agent_are_tools(folder: Path, skills: str, problem: list[str]) -> None:
    text = "namespace: shop\nactors:\n  a: {handler: shop.one}\ntools: {order: {route: [a]}}\n"
    assert mistakes(f"{text}agent: {{skills: [{skills}]}}\n") == problem


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("sink: {hooks: [b]}", "4: sink.hooks[0]: there is no actor 'b'"),
        (
            "sink: {prefixes: {failed: ../x}}",
            "4: sink.prefixes.failed: should be a relative prefix such as failed/; got '../x'",
        ),
        (
            "storage: {retention: {payloads: 10d}}",
            "4: storage.retention.payloads: should be at least 18d: a message with a claim check "
            "may stay 4d in a queue and 14d in a dead-letter queue",
        ),
        ("storage: {retention: {tasks: 36h}}", "4: storage.retention.tasks: should be whole days, such as 30d"),
        ("tags: {'aws:x': y}", "4: tags.aws:x: the prefix aws: is reserved by AWS; rename the tag"),
        (
            "gateway: {max_body: 11m}",
            "4: gateway.max_body: should be from 1k to 10m; API Gateway accepts no larger body",
        ),
        (
            "storage: {retention: {logs: 45d}}",
            "4: storage.retention.logs: should be a number of days that CloudWatch offers: 1, 3, 5, 7, 14, 30, 60, 90, 120, "
            "150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653",
        ),
    ],
)
def test_keys_of_the_whole_mesh(folder: Path, more: str, problem: str) -> None:
    assert mistakes(f"namespace: shop\nactors:\n  a: {{handler: shop.one}}\n{more}\n") == [problem]


@pytest.mark.parametrize(
    ("jwt", "problem"),
    [
        ("{audience: a}", "4: gateway.jwt.issuer: missing"),
        ("{issuer: https://who}", "4: gateway.jwt.audience: missing"),
        ("{issuer: https://who, audience: []}", "4: gateway.jwt.audience: should not be empty"),
        ("{issuer: https://who, audience: ['']}", "4: gateway.jwt.audience[0]: should not be empty"),
        (
            "{issuer: who, audience: a}",
            "4: gateway.jwt.issuer: should be a URL such as https://login.example.com/; got 'who'",
        ),
        (
            "{issuer: 'https://who#a', audience: a}",
            "4: gateway.jwt.issuer: should be a URL such as https://login.example.com/; got 'https://who#a'",
        ),
        (
            "{issuer: 'http://who', audience: a}",
            "4: gateway.jwt.issuer: should start with https:// (http:// only for the local cloud, at 127.0.0.1); "
            "got 'http://who'",
        ),
        (
            "{issuer: https://who, audience: a, calls: [tasks, toolz]}",
            "4: gateway.jwt.calls[1]: should be 'tasks', 'tools', 'mcp', 'a2a' or 'streams'; got 'toolz'; "
            "did you mean 'tools'?",
        ),
        ("{issuer: https://who, audience: a, calls: []}", "4: gateway.jwt.calls: should not be empty"),
    ],
)
def test_the_issuer_of_tokens(folder: Path, jwt: str, problem: str) -> None:
    text = f"namespace: shop\nactors:\n  a: {{handler: shop.one}}\ngateway: {{jwt: {jwt}}}\n"
    assert [line for line in mistakes(text) if "calls" not in problem or "calls" in line] == [problem]


def test_operators_are_arns_or_claims_of_tokens(folder: Path) -> None:
    text = "namespace: shop\nactors:\n  a: {handler: shop.one}\n"
    jwt = "gateway: {jwt: {issuer: 'http://127.0.0.1:8080', audience: a}}\n"
    arns = "operators: ['arn:aws:iam::*:user/a=b', '*:role/Admin'"
    assert mistakes(f"{text}{jwt}{arns}, groups=admins, 'https://who/roles=a*']\n") == []
    assert mistakes(f"{text}{arns}, groups=admins, alice]\n") == [
        "4: operators[2]: 'groups=admins' is a claim of a token, but the mesh accepts no tokens; set gateway.jwt",
        "4: operators[3]: should be an IAM ARN or a claim of a token such as name=value; got 'alice'",
    ]


def test_mistakes_in_defaults_are_reported_once_at_their_line(folder: Path) -> None:
    text = """
    namespace: shop
    defaults: {timeot: 3s, timeout: 2m}
    actors:
      a: {handler: shop.one}
      b: {handler: shop.one}
    """
    assert [line.split(": ")[:2] for line in mistakes(text)] == [["2", "defaults.timeot"], ["2", "defaults.timeout"]]


def test_all_mistakes_are_reported_in_the_order_of_the_file(folder: Path) -> None:
    text = """
    namespace: shop
    actors:
      a:
        handler: shop.on
        timeot: 3s
        concurrency: 1
      b: {}
    tools:
      t: {route: [c]}
    """
    assert [line.split(": ")[:2] for line in mistakes(text)] == [
        ["4", "actors.a.handler"],
        ["5", "actors.a.timeot"],
        ["6", "actors.a.concurrency"],
        ["7", "actors.b"],
        ["9", "tools.t.route[0]"],
    ]


def test_only_a_light_actor_has_a_circuit_breaker(folder: Path) -> None:
    breaker = "circuit_breaker: {failures: 5, window: 1m, open_for: 30s}"
    assert actor(f"resiliency: {{{breaker}}}") == []
    problem = "only a light actor may have a circuit breaker; remove it, or set it to null"
    assert heavy(f"resiliency: {{{breaker}}}") == [f"4: actors.a.resiliency.circuit_breaker: {problem}"]
    both = f"""
        namespace: shop
        defaults: {{resiliency: {{{breaker}}}}}
        actors:
          a: {{handler: shop.one}}
          b: {{spark: {{job: heavy.crunch}}, resiliency: {{circuit_breaker: null}}}}
    """
    assert mistakes(both) == []
    assert mistakes(both.replace(", resiliency: {circuit_breaker: null}", "")) == [
        f"2: defaults.resiliency.circuit_breaker: {problem}"
    ]
    assert actor("resiliency: {circuit_breaker: {failures: 1001, window: 1m, open_for: 30s}}") == [
        "4: actors.a.resiliency.circuit_breaker.failures: should be at most 1000; got 1001"
    ]


def notify(keys: str) -> list[str]:
    """Return the problems of a section `notify` in line 4."""
    return mistakes(f"namespace: shop\nactors:\n  a: {{handler: shop.one}}\nnotify: {{{keys}}}\n")


def test_alarms_may_have_addresses_webhooks_a_topic_and_thresholds(folder: Path) -> None:
    assert notify("email: [ops@example.com, b@example.com], https: 'https://events.example.com/x'") == []
    assert notify("topic: 'arn:aws:sns:eu-central-1:111122223333:alarms'") == []
    assert notify("thresholds: {failure_rate: 0.5%, failures: none, oldest_message: 2h, stuck_runs: none}") == []
    assert notify("thresholds: {deadline_missed: 5, dead_letters: none, stopped_sweep: 10m, redelivered: 1}") == []


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("email: [ops]", "4: notify.email[0]: should be an e-mail address such as ops@example.com; got 'ops'"),
        ("email: [a@b.example, a@b.example]", "4: notify.email[1]: 'a@b.example' is there twice; remove one of them"),
        (
            "https: ['http://a.example']",
            "4: notify.https[0]: should be a URL such as https://events.example.com/alarms; got 'http://a.example'",
        ),
        (
            "topic: alarms",
            "4: notify.topic: should be the ARN of a standard SNS topic such as "
            "arn:aws:sns:eu-central-1:111122223333:alarms; got 'alarms'",
        ),
        (
            "email: a@b.example, topic: 'arn:aws:sns:eu-central-1:111122223333:alarms'",
            "4: notify.topic: excludes email and https: subscribe them to the topic, or remove the topic",
        ),
        ("mail: a@b.example", "4: notify.mail: unknown key; did you mean 'email'?"),
        (
            "thresholds: {failure_rate: 0.05}",
            "4: notify.thresholds.failure_rate: should be a share such as 5%, or none for no alarm; got 0.05",
        ),
        (
            "thresholds: {failure_rate: 0%}",
            "4: notify.thresholds.failure_rate: should be more than 0% and at most 100%; got 0%",
        ),
        (
            "thresholds: {failures: 0}",
            "4: notify.thresholds.failures: should be a number of at least 1, or none for no alarm; got 0",
        ),
        (
            "thresholds: {oldest_message: 90s}",
            "4: notify.thresholds.oldest_message: should be whole minutes such as 15m, or none for no alarm; got '90s'",
        ),
        *(
            (
                f"thresholds: {{oldest_message: {age}}}",
                "4: notify.thresholds.oldest_message: should be more than 15m, because retries and timers wait that long in "
                f"queues, and less than 4d, their retention; got {age}",
            )
            for age in ("15m", "4d")
        ),
        (
            "thresholds: {stuck_runs: 5}",
            "4: notify.thresholds.stuck_runs: should be a duration such as 500ms, 30s, 10m, 2h or 7d; got 5",
        ),
        (
            "thresholds: {stopped_sweep: 5m}",
            "4: notify.thresholds.stopped_sweep: should be 10m to 1d, because some sweeps run every 5 minutes; got 5m",
        ),
        ("thresholds: {errors: 1}", "4: notify.thresholds.errors: unknown key"),
    ],
)
def test_wrong_values_of_alarms(folder: Path, keys: str, problem: str) -> None:
    assert notify(keys) == [problem]
