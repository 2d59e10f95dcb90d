"""Functions in the templates: settings, event sources and recursion."""

import json
from typing import Any

import pytest

from asya.protocol import names

ACTORS = ("intake", "score", "crunch", "free", "gather", "approve", "audit")
SYSTEM = (
    *("x-sink", "x-checkpoint", "x-dispatch", "x-completion", "x-reconcile", "x-clock"),
    *(
        "x-index",
        "x-fan-in",
        "x-pause",
        "x-resume",
        "x-push-feed",
        "x-push",
        "x-reports",
        "x-roles",
        "x-gateway-api",
        "x-gateway-stream",
        "x-gateway-live",
        "x-operations",
    ),
)


def feed(mesh: Any, actor: str, namespace: str = "shop") -> dict[str, Any]:
    feeds = mesh.resources("AWS::Lambda::EventSourceMapping")
    sources = [each for each in feeds if each["EventSourceArn"].endswith(f":asya-{namespace}-{actor}")]
    assert len(sources) == 1
    return dict(sources[0])


def test_every_actor_has_a_function(shop: Any) -> None:
    names = {function["FunctionName"] for function in shop.resources("AWS::Lambda::Function")}
    assert names == {f"asya-shop-{name}" for name in (*ACTORS, *SYSTEM)}


def test_templates_have_no_variables_for_secrets(shop: Any) -> None:
    for function in shop.resources("AWS::Lambda::Function"):
        variables = function["Environment"]["Variables"]
        assert not {"RATES_KEY", "RATES_TOKEN", "CRUNCH_KEY"} & variables.keys()


@pytest.mark.parametrize(
    ("actor", "handler"),
    [
        ("intake", "light.lambdas.sidecar.sidecar"),
        ("crunch", "heavy.lambdas.wiring.enqueue"),
        ("x-sink", "ends.lambdas.wiring.ends"),
        ("x-checkpoint", "ends.lambdas.wiring.checkpoint"),
        ("x-fan-in", "capabilities.fan_in.lambdas.wiring.fan_in"),
        ("gather", "capabilities.fan_in.lambdas.wiring.fan_in"),
        ("x-pause", "capabilities.pauses.lambdas.wiring.pause"),
        ("approve", "capabilities.pauses.lambdas.wiring.pause"),
        ("x-resume", "capabilities.pauses.lambdas.wiring.resume"),
        ("x-clock", "capabilities.clock.lambdas.clock.clock"),
        ("x-dispatch", "heavy.lambdas.wiring.dispatch"),
        ("x-completion", "heavy.lambdas.wiring.complete"),
        ("x-push-feed", "capabilities.a2a.lambdas.push.push_feed"),
        ("x-push", "capabilities.a2a.lambdas.push.push"),
        ("x-reports", "gateway.lambdas.wiring.report_queues"),
        ("x-roles", "senders.lambdas.role_listing.role_listing"),
        ("x-gateway-api", "gateway.lambdas.api.api"),
        ("x-gateway-stream", "gateway.streams.routes.stream"),
        ("x-operations", "gateway.operations.wiring.operations"),
    ],
)
def test_entry_points(shop: Any, actor: str, handler: str) -> None:
    assert shop.function(actor)["Handler"] == f"asya.{handler}"


def test_runtime_and_architecture_on_aws(shop: Any) -> None:
    for function in shop.resources("AWS::Lambda::Function"):
        assert function["Runtime"] == "python3.13"
        assert function["Architectures"] == ["arm64"]
        has_server = function["FunctionName"] == "asya-shop-x-gateway-live"
        has_collector = "ASYA_TRACES_ENDPOINT" in function["Environment"]["Variables"]
        assert len(function["Layers"]) == 1 + has_server + has_collector


@pytest.mark.parametrize(
    ("actor", "timeout"), [("intake", 20 * 5 + 30), ("free", 2 * 100 + 30), ("crunch", 120), ("x-sink", 120)]
)
def test_timeouts_follow_from_the_mesh_file(shop: Any, actor: str, timeout: int) -> None:
    assert shop.function(actor)["Timeout"] == timeout


def test_recursion_is_allowed_only_for_routable_actors(shop: Any) -> None:
    allowed = {
        function["FunctionName"].removeprefix("asya-shop-")
        for function in shop.resources("AWS::Lambda::Function")
        if function.get("RecursiveLoop") == "Allow"
    }
    assert allowed == {*ACTORS, *("x-checkpoint", "x-fan-in", "x-pause", "x-resume", "x-dispatch", "x-completion")}


def test_event_sources_report_partial_batch_failures_and_limit_concurrency(shop: Any) -> None:
    for actor in (
        *ACTORS,
        "x-fan-in",
        "x-dispatch",
        "x-completion",
        "x-reports",
        "x-ends",
    ):
        each = feed(shop, actor)
        assert each["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        limit = (
            each.get("ScalingConfig", {}).get("MaximumConcurrency") or each["ProvisionedPollerConfig"]["MaximumPollers"]
        )
        assert 2 <= limit <= 1000


def test_queues_of_the_crew_have_no_limit_and_so_fewer_pollers(shop: Any) -> None:
    for actor in ("x-sink", "x-sump", "x-checkpoint", "x-resume"):
        assert "ScalingConfig" not in feed(shop, actor)


def test_batches(shop: Any) -> None:
    assert feed(shop, "intake")["BatchSize"] == 5
    assert "MaximumBatchingWindowInSeconds" not in feed(shop, "intake")
    assert (feed(shop, "free")["BatchSize"], feed(shop, "free")["MaximumBatchingWindowInSeconds"]) == (100, 5)
    # 100 is the size of a heavy actor's job runs, not of the batches its envelopes are taken in.
    assert (feed(shop, "crunch")["BatchSize"], feed(shop, "crunch")["MaximumBatchingWindowInSeconds"]) == (100, 1)
    assert feed(shop, "x-completion")["BatchSize"] == 1


def test_one_function_takes_the_ends_of_both_queues(shop: Any) -> None:
    assert feed(shop, "x-sink")["FunctionName"] == feed(shop, "x-sump")["FunctionName"]
    assert feed(shop, "x-sink")["FunctionName"].startswith("<xsinkFunction")


@pytest.mark.rule("4.report-queues")
def test_one_function_takes_the_reports_of_both_queues_at_once(shop: Any) -> None:
    for queue in ("x-reports", "x-ends"):
        source = feed(shop, queue)
        assert source["FunctionName"] == feed(shop, "x-reports")["FunctionName"]
        assert source["FunctionName"].startswith("<xreportsFunction")
        assert source["BatchSize"] == 10
        assert "MaximumBatchingWindowInSeconds" not in source
    assert feed(shop, "x-reports")["FunctionName"] != feed(shop, "x-sink")["FunctionName"]


def test_provisioned_concurrency_is_on_the_alias_of_the_event_source(shop: Any) -> None:
    alias = shop.one("AWS::Lambda::Alias", Name="warm")
    assert alias["ProvisionedConcurrencyConfig"] == {"ProvisionedConcurrentExecutions": 2}
    assert feed(shop, "score")["FunctionName"].endswith(":warm")


def test_environment(shop: Any) -> None:
    variables = shop.function("intake")["Environment"]["Variables"]
    assert variables == {
        "CURRENCY": "EUR",
        "ASYA_ACTOR": "intake",
        "ASYA_BUCKET": "asya-shop-<AccountId>-<Region>",
        "ASYA_DATA_URI": "s3://asya-shop-<AccountId>-<Region>/data/",
        "ASYA_RESULTS_URI": "s3://asya-shop-<AccountId>-<Region>/results/",
        "ASYA_QUEUE_URL_PREFIX": "https://sqs.<Region>.<URLSuffix>/<AccountId>/",
        "ASYA_GATEWAY_URL": "<import>",
        "ASYA_TRACES_ENDPOINT": "http://localhost:4318/v1/traces",
        "ASYA_TRACES_SHARE": "0.125",
        "POWERTOOLS_SERVICE_NAME": "intake",
        "POWERTOOLS_METRICS_NAMESPACE": "Asya",
        "LOG_LEVEL": "INFO",
    }
    # A heavy actor's variables are its job's; they travel in mesh.json.
    assert "MODE" not in shop.function("crunch")["Environment"]["Variables"]


def test_the_dispatcher_has_the_settings_of_job_runs(shop: Any) -> None:
    for actor in ("x-dispatch", "x-completion"):
        variables = shop.function(actor)["Environment"]["Variables"]
        assert variables["ASYA_SPARK_APPLICATION_ID"].startswith("<SsmParameterValueasyashopsparkapplicationid")
        assert variables["ASYA_ROLE_PREFIX"] == "arn:<Partition>:iam::<AccountId>:role/"
        assert variables["ASYA_ACCESS_POLICY_PREFIX"] == "arn:<Partition>:iam::<AccountId>:policy/<Region>-"
        for key, suffix in (("ENTRY_POINT", ".py"), ("PY_FILES", ".zip"), ("CODE", ".tgz"), ("PACKAGES", ".tgz")):
            assert variables[f"ASYA_JOB_{key}"].startswith("s3://")
            # Spark unpacks archives by their endings.
            assert variables[f"ASYA_JOB_{key}"].endswith(suffix)


def test_user_code_has_log_groups_of_its_own_and_the_crew_shares_one_all_with_retention(shop: Any) -> None:
    groups = {group["LogGroupName"]: group["RetentionInDays"] for group in shop.resources("AWS::Logs::LogGroup")}
    assert set(groups.values()) == {90}
    written = {
        function["FunctionName"].removeprefix("asya-shop-"): function["LoggingConfig"]["LogGroup"]
        for function in shop.resources("AWS::Lambda::Function")
    }
    own = {name: group for name, group in written.items() if name not in names.CREW}
    assert own.keys() == {*ACTORS}
    assert all(group.startswith(f"<{name}Logs") for name, group in own.items())
    # The gateway's stack has the group. Its functions refer to it, because they may run before the deployment ends.
    shared = {group for name, group in written.items() if name in names.CREW}
    assert {group for group in shared if not group.startswith("<CrewLogs")} == {"/aws/lambda/asya-shop-x-crew"}
    assert {group for group in groups if group.startswith("/aws/lambda/")} == {
        f"/aws/lambda/asya-shop-{name}" for name in (*ACTORS, names.CREW_LOGS)
    }


def test_the_crew_alone_logs_no_lines_of_lambda_about_calls_that_succeed(shop: Any) -> None:
    logged = {
        function["FunctionName"].removeprefix("asya-shop-"): {
            key: value for key, value in function["LoggingConfig"].items() if key != "LogGroup"
        }
        for function in shop.resources("AWS::Lambda::Function")
    }
    quiet = {"LogFormat": "JSON", "ApplicationLogLevel": "INFO", "SystemLogLevel": "WARN"}
    assert {name for name, options in logged.items() if options == quiet} == logged.keys() & names.CREW
    assert [options for name, options in logged.items() if name not in names.CREW] == [{}] * len(ACTORS)


def test_no_role_of_user_code_may_write_to_the_log_of_the_crew(shop: Any) -> None:
    shared, writers = "log-group:/aws/lambda/asya-shop-x-crew", set[str]()
    for role in shop.resources("AWS::IAM::Role"):
        if shared in json.dumps([each for each in _statements(role) if "logs:PutLogEvents" in each["Action"]]):
            writers.add(role["RoleName"].removeprefix("asya-shop-").removesuffix("-<Region>"))
    functions = {each["FunctionName"].removeprefix("asya-shop-") for each in shop.resources("AWS::Lambda::Function")}
    assert writers == functions & names.CREW


def _statements(role: dict[str, Any]) -> list[dict[str, Any]]:
    documents = [each["PolicyDocument"] for each in role["Policies"]]
    return [statement for document in documents for statement in document["Statement"]]


def test_a_stage_is_part_of_every_name(plain: Any) -> None:
    assert plain.function("score", "plain-test")["Environment"]["Variables"]["ASYA_ACTOR"] == "score"
    for queue in plain.resources("AWS::SQS::Queue"):
        assert queue["QueueName"].startswith("asya-plain-test-")


def test_existing_buckets_are_used_from_their_root(plain: Any) -> None:
    variables = plain.function("score", "plain-test")["Environment"]["Variables"]
    assert variables["ASYA_DATA_URI"] == "s3://lake/"
    assert variables["ASYA_RESULTS_URI"] == "s3://lake-results/"
    assert variables["ASYA_BUCKET"] == "asya-plain-test-<AccountId>-<Region>"


def test_reserved_concurrency(shop: Any, plain: Any) -> None:
    assert shop.function("intake")["ReservedConcurrentExecutions"] == 20
    functions = [*shop.resources("AWS::Lambda::Function"), *plain.resources("AWS::Lambda::Function")]
    reserved = {f["FunctionName"] for f in functions if "ReservedConcurrentExecutions" in f}
    # Nothing is reserved unless the mesh file says so: an account of ten executions could not deploy the mesh.
    assert reserved == {"asya-shop-intake", "asya-shop-x-gateway-stream", "asya-shop-x-gateway-live"}


def test_pollers_replace_the_maximum_of_concurrent_executions(shop: Any) -> None:
    sources = {
        source["EventSourceArn"].rpartition(":")[2]: source
        for source in shop.resources("AWS::Lambda::EventSourceMapping")
        if "sqs" in source["EventSourceArn"]
    }
    assert sources["asya-shop-free"]["ProvisionedPollerConfig"] == {"MinimumPollers": 3, "MaximumPollers": 9}
    assert "ScalingConfig" not in sources["asya-shop-free"]
    assert sources["asya-shop-intake"]["ScalingConfig"] == {"MaximumConcurrency": 20}


def test_functions_and_queues_name_their_actor_for_the_allocation_of_costs(shop: Any) -> None:
    tagged = [shop.function("intake"), shop.one("AWS::SQS::Queue", QueueName="asya-shop-intake")]
    for resource in tagged:
        assert {"Key": "asya:actor", "Value": "intake"} in resource["Tags"]
