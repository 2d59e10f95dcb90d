"""The limit gate names what exceeds a limit of AWS, by how much, and what to do."""

import json
from typing import Any

import pytest

from asya_infra.limits.aws_limits import Violation
from asya_infra.limits.templates import check

REGION, ACCOUNT = {"Ref": "AWS::Region"}, {"Ref": "AWS::AccountId"}


def arn(name: str) -> dict[str, Any]:
    return {"Fn::Join": ["", ["arn:aws:sqs:", REGION, ":", ACCOUNT, f":{name}"]]}


def policy(resources: int) -> dict[str, Any]:
    queues = [arn(f"asya-shop-actor-{number:04}") for number in range(resources)]
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": queues}],
    }


def violations(*resources: dict[str, Any], **template: Any) -> list[str]:
    """Return the violations of a stack `S` with the resources r0, r1 and so on."""
    named = {f"r{number}": resource for number, resource in enumerate(resources)}
    return [str(violation) for violation in check_files(S=file({"Resources": named, **template}))]


def file(template: dict[str, Any]) -> bytes:
    """Return a template as the CDK writes it, without indentation."""
    return json.dumps(template, separators=(",", ":")).encode()


def check_files(**files: bytes) -> list[Violation]:
    """Return the violations of template files by the name of their stacks."""
    sizes = {stack: len(content) for stack, content in files.items()}
    return check({stack: json.loads(content) for stack, content in files.items()}, sizes)


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties}


FINE = [
    resource("AWS::IAM::Role", Policies=[{"PolicyDocument": policy(60)}, {"PolicyDocument": policy(60)}]),
    resource("AWS::IAM::ManagedPolicy", PolicyDocument=policy(80)),
    resource("AWS::Lambda::Function", FunctionName="f", Timeout=900, Environment={"Variables": {"A": "x" * 4000}}),
    resource("AWS::SQS::Queue", QueueName="q" * 80, VisibilityTimeout=43_200),
]


def test_values_within_the_limits_pass() -> None:
    assert violations(*FINE) == []


def one_role_for_all(heavy_actors: int) -> dict[str, Any]:
    """Return the role that the job runs of all actors shared, with the access of each of them inline."""
    access = [
        {"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": [f"arn:aws:s3:::lake-of-the-company/in-{n:03}/*"]}
        | {"Condition": {"StringLike": {"s3:prefix": ["x" * 740]}}}
        for n in range(heavy_actors)
    ]
    return resource("AWS::IAM::Role", Policies=[{"PolicyDocument": {"Version": "2012-10-17", "Statement": access}}])


def test_the_access_of_twelve_actors_does_not_fit_into_one_role() -> None:
    assert violations(one_role_for_all(11)) == []
    (violation,) = violations(one_role_for_all(12))
    assert violation.startswith("S/r0: 10,")
    assert "characters of all inline policies of a role; at most 10,240." in violation


@pytest.mark.parametrize(
    ("exceeding", "text"),
    [
        (
            resource("AWS::IAM::Role", ManagedPolicyArns=[f"arn:{number}" for number in range(11)]),
            "S/r0: 11 managed policies of a role; at most 10. Set `can_send_to` to fewer actors.",
        ),
        (
            resource("AWS::IAM::Role", AssumeRolePolicyDocument=policy(40)),
            "characters of a trust policy; at most 2,048",
        ),
        (resource("AWS::IAM::Role", RoleName="r" * 65), "S/r0: 65 characters of a role's name; at most 64."),
        (resource("AWS::IAM::ManagedPolicy", PolicyDocument=policy(120)), "of a managed policy; at most 6,144."),
        (resource("AWS::Lambda::Function", Timeout=901), "S/r0: 901 seconds of a function; at most 900."),
        (
            resource("AWS::Lambda::Function", Environment={"Variables": {"AB": "x" * 4088}}),
            "S/r0: 4,097 bytes of a function's environment variables; at most 4,096. Shorten `env` of the actor.",
        ),
        (resource("AWS::Lambda::Function", Layers=["l"] * 6), "S/r0: 6 layers of a function; at most 5."),
        (resource("AWS::Lambda::Function", FunctionName="f" * 65), "S/r0: 65 characters of a function's name"),
        (resource("AWS::SQS::Queue", QueueName="q" * 81), "S/r0: 81 characters of a queue's name; at most 80."),
        (resource("AWS::SQS::Queue", VisibilityTimeout=43_201), "S/r0: 43,201 seconds of a visibility timeout"),
        (
            resource(
                "AWS::CloudWatch::Dashboard",
                DashboardBody=json.dumps({"widgets": [{"properties": {"metrics": [["m"]] * 61}}] * 41}),
            ),
            "S/r0: 2,501 metrics of a dashboard; at most 2,500.",
        ),
        (
            resource("AWS::EMRServerless::Application", SchedulerConfiguration={"MaxConcurrentRuns": 1001}),
            "S/r0: 1,001 concurrent job runs of an application; at most 1,000.",
        ),
    ],
)
def test_a_value_beyond_a_limit_is_named(exceeding: dict[str, Any], text: str) -> None:
    (violation,) = violations(exceeding)
    assert text in violation
    assert "(https://docs.aws.amazon.com/" in violation


def test_a_violation_names_the_path_of_the_construct() -> None:
    role = resource("AWS::IAM::Role", RoleName="r" * 65)
    role["Metadata"] = {"aws:cdk:path": "Asya-shop-functions-3/score/Role/Resource"}
    assert violations(role)[0].startswith("Asya-shop-functions-3/score/Role: 65 characters")


def test_a_stack_uses_four_fifths_of_a_template_and_nine_tenths_of_the_resources() -> None:
    wide = resource("AWS::SNS::Topic", DisplayName="t" * 1750)
    (size,) = violations(*[wide] * 450)
    assert size.startswith("S: 8")
    assert "bytes of a template; at most 800,000 of 1,000,000." in size
    (count,) = violations(*[resource("AWS::SNS::Topic")] * 451)
    assert count.startswith("S: 451 resources of a stack; at most 450 of 500.")


def test_the_bytes_of_the_file_count() -> None:
    """CloudFormation counts white space, too: an indented template has twice the bytes."""
    resources = {f"r{number}": resource("AWS::SNS::Topic", DisplayName="t" * 1500) for number in range(400)}
    template = {"Resources": resources}
    assert check_files(S=file(template)) == []
    (violation,) = check_files(S=json.dumps(template, indent=400).encode())
    assert "bytes of a template" in str(violation)


def test_outputs_and_parameters_are_counted() -> None:
    many = {f"o{number}": {} for number in range(201)}
    assert violations(Outputs=many)[0].startswith("S: 201 outputs of a stack; at most 200.")
    assert violations(Parameters=many)[0].startswith("S: 201 parameters of a stack; at most 200.")


def source(concurrency: int = 2, window: int = 0) -> dict[str, Any]:
    return resource(
        "AWS::Lambda::EventSourceMapping",
        EventSourceArn=arn("asya-shop-score"),
        MaximumBatchingWindowInSeconds=window,
        ScalingConfig={"MaximumConcurrency": concurrency},
    )


def test_messages_do_not_reappear_while_lambda_gathers_them() -> None:
    function = resource("AWS::Lambda::Function", FunctionName="asya-shop-score", Timeout=80)
    queue = resource("AWS::SQS::Queue", QueueName="asya-shop-score", VisibilityTimeout=110)
    assert violations(function, queue, source(window=30)) == []
    (violation,) = violations(function, queue, source(window=120))
    assert violation.startswith("S/r1: 110 seconds of a visibility timeout; at least 200.")


def test_a_function_may_take_the_messages_of_a_queue_with_another_name() -> None:
    function = resource("AWS::Lambda::Function", FunctionName="asya-shop-x-reports", Timeout=120)
    queue = resource("AWS::SQS::Queue", QueueName="asya-shop-score", VisibilityTimeout=110)
    feed = source()
    feed["Properties"]["FunctionName"] = {"Ref": "r0"}
    (violation,) = violations(function, queue, feed)
    assert violation.startswith("S/r1: 110 seconds of a visibility timeout; at least 120.")


@pytest.mark.parametrize(
    ("concurrency", "bound"), [(1, "1 concurrent executions of an event source; at least 2."), (1001, "at most 1,000.")]
)
def test_the_concurrency_of_an_event_source(concurrency: int, bound: str) -> None:
    (violation,) = violations(source(concurrency))
    assert bound in violation


def test_a_mesh_may_not_reserve_what_an_account_keeps_unreserved() -> None:
    functions = [resource("AWS::Lambda::Function", ReservedConcurrentExecutions=450) for _ in range(2)]
    assert violations(*functions) == []
    (violation,) = violations(*functions, resource("AWS::Lambda::Function", ReservedConcurrentExecutions=1))
    assert "the mesh: 901 concurrent executions of an account" in violation


def test_the_quotas_of_an_account_are_counted_over_all_stacks() -> None:
    stack = {"Resources": {f"r{number}": resource("AWS::Events::Rule") for number in range(151)}}
    (violation,) = check_files(A=file(stack), B=file(stack))
    assert str(violation).startswith("the mesh: 302 rules of an event bus; at most 300.")


def test_an_event_pattern_has_2048_characters() -> None:
    pattern = {"source": ["shop"], "detail": {"order": ["x" * 2_005]}}
    assert len(json.dumps(pattern, separators=(",", ":"))) == 2_048
    assert violations(resource("AWS::Events::Rule", EventPattern=pattern)) == []
    pattern["detail"]["order"].append("")
    (violation,) = violations(resource("AWS::Events::Rule", EventPattern=pattern))
    assert "2,051 characters of an event pattern; at most 2,048" in violation


STATEMENT = {"Effect": "Allow", "Action": "a", "Resource": "r"}


def alarm(metrics: int = 1, period: int = 60, **properties: Any) -> dict[str, Any]:
    queries = [{"Id": f"m{number}", "MetricStat": {"Period": period}} for number in range(metrics)]
    return resource("AWS::CloudWatch::Alarm", Metrics=[{"Id": "value", "Expression": "m0"}, *queries], **properties)


@pytest.mark.parametrize(
    ("fine", "exceeding", "text"),
    [
        (alarm(10), alarm(11), "11 metrics of an alarm; at most 10."),
        (alarm(EvaluationPeriods=1440), alarm(EvaluationPeriods=1441), "86,460 seconds that an alarm looks at"),
        (
            alarm(period=3600, EvaluationPeriods=168),
            alarm(period=3600, EvaluationPeriods=169),
            "608,400 seconds that an alarm with periods of an hour looks at; at most 604,800.",
        ),
        (alarm(AlarmActions=["t"] * 5), alarm(AlarmActions=["t"] * 6), "6 actions of an alarm for one state"),
        (
            alarm(AlarmDescription="x" * 1024),
            alarm(AlarmDescription="x" * 1025),
            "characters of an alarm's description",
        ),
        (alarm(AlarmName="x" * 255), alarm(AlarmName="x" * 256), "256 characters of an alarm's name; at most 255."),
        (
            resource("AWS::Events::Rule", Targets=[{}] * 5),
            resource("AWS::Events::Rule", Targets=[{}] * 6),
            "6 targets of a rule; at most 5.",
        ),
        (
            resource("AWS::SQS::QueuePolicy", PolicyDocument={"Statement": [STATEMENT] * 20}),
            resource("AWS::SQS::QueuePolicy", PolicyDocument={"Statement": [STATEMENT] * 21}),
            "21 statements of a queue's policy; at most 20.",
        ),
        (
            resource("AWS::SNS::TopicPolicy", PolicyDocument={"Statement": [STATEMENT] * 100}),
            resource("AWS::SNS::TopicPolicy", PolicyDocument={"Statement": [STATEMENT] * 101}),
            "101 statements of a topic's policy; at most 100.",
        ),
        (
            resource("AWS::SNS::Subscription", FilterPolicy={"actor": ["a"] * 75, "kind": ["b"] * 2}),
            resource("AWS::SNS::Subscription", FilterPolicy={"actor": ["a"] * 151}),
            "151 combinations of values of a subscription's filter policy; at most 150. Give other actors another address",
        ),
        (
            resource("AWS::KMS::Key", KeyPolicy={"Statement": "x" * 32_000}),
            resource("AWS::KMS::Key", KeyPolicy={"Statement": "x" * 33_000}),
            "bytes of a key's policy; at most 32,768.",
        ),
        (
            resource("AWS::S3::BucketPolicy", PolicyDocument={"Statement": "x" * 20_000}),
            resource("AWS::S3::BucketPolicy", PolicyDocument={"Statement": "x" * 21_000}),
            "bytes of a bucket's policy; at most 20,480.",
        ),
        (
            resource("AWS::ApiGatewayV2::Authorizer", JwtConfiguration={"Audience": ["a"] * 50}),
            resource("AWS::ApiGatewayV2::Authorizer", JwtConfiguration={"Audience": ["a"] * 51}),
            "51 audiences of an authorizer; at most 50. Shorten `gateway.jwt.audience`.",
        ),
        (
            resource("AWS::DynamoDB::Table", GlobalSecondaryIndexes=[{}] * 20),
            resource("AWS::DynamoDB::Table", GlobalSecondaryIndexes=[{}] * 21),
            "21 global secondary indexes of a table; at most 20.",
        ),
        (
            resource("AWS::S3::Bucket", LifecycleConfiguration={"Rules": [{}] * 1000}),
            resource("AWS::S3::Bucket", LifecycleConfiguration={"Rules": [{}] * 1001}),
            "1,001 lifecycle rules of a bucket; at most 1,000.",
        ),
        (
            resource("AWS::SSM::Parameter", Value="x" * 4096),
            resource("AWS::SSM::Parameter", Value="x" * 4097),
            "4,097 bytes of a standard parameter; at most 4,096.",
        ),
        (
            resource("AWS::EMRServerless::Application", AutoStopConfiguration={"IdleTimeoutMinutes": 10_080}),
            resource("AWS::EMRServerless::Application", AutoStopConfiguration={"IdleTimeoutMinutes": 10_081}),
            "10,081 minutes until an idle application stops; at most 10,080.",
        ),
        (
            resource("AWS::SNS::Topic", Tags=[{}] * 50),
            resource("AWS::SNS::Topic", Tags=[{}] * 51),
            "51 tags of a resource; at most 50. Set fewer `tags`.",
        ),
        (
            resource("AWS::SSM::Parameter", Tags={str(number): "" for number in range(50)}),
            resource("AWS::SSM::Parameter", Tags={str(number): "" for number in range(51)}),
            "51 tags of a resource; at most 50.",
        ),
    ],
)
def test_a_limit_that_the_cdk_lets_through(fine: dict[str, Any], exceeding: dict[str, Any], text: str) -> None:
    assert violations(fine) == []
    (violation,) = violations(exceeding)
    assert text in violation


def test_a_widget_has_500_metrics() -> None:
    def dashboard(*metrics: int) -> dict[str, Any]:
        widgets = [{"properties": {"metrics": [["m"]] * number}} for number in metrics]
        return resource("AWS::CloudWatch::Dashboard", DashboardBody=json.dumps({"widgets": widgets}))

    assert violations(dashboard(500, 500)) == []
    assert "501 metrics of a widget; at most 500." in violations(dashboard(1, 501))[0]


@pytest.mark.parametrize(
    ("kind", "key", "most", "unit"),
    [
        ("AWS::ApiGatewayV2::Route", "ApiId", 300, "routes of an HTTP API"),
        ("AWS::ApiGatewayV2::Integration", "ApiId", 300, "integrations of an HTTP API"),
        ("AWS::ApiGatewayV2::Authorizer", "ApiId", 10, "authorizers of an HTTP API"),
        ("AWS::ApiGateway::Resource", "RestApiId", 300, "resources of a REST API"),
    ],
)
def test_the_parts_of_an_api_are_counted(kind: str, key: str, most: int, unit: str) -> None:
    own, other = resource(kind, **{key: {"Ref": "a"}}), resource(kind, **{key: {"Ref": "b"}})
    assert violations(*[own] * most, other) == []
    (violation,) = violations(*[own] * (most + 1), other)
    assert f"{most + 1:,} {unit}; at most {most:,}." in violation


def test_permissions_are_the_policy_of_their_function() -> None:
    permission = resource(
        "AWS::Lambda::Permission", FunctionName="f", SourceArn="x" * 100, Principal="events.amazonaws.com"
    )
    other = resource("AWS::Lambda::Permission", FunctionName="g", SourceArn="x" * 100)
    assert violations(*[permission] * 40, *[other] * 40) == []
    (violation,) = violations(*[permission] * 80)
    assert "bytes of a function's resource-based policy; at most 20,480." in violation


def test_a_mesh_may_not_keep_more_instances_than_an_account_has() -> None:
    config = {"ProvisionedConcurrentExecutions": 450}
    aliases = [resource("AWS::Lambda::Alias", ProvisionedConcurrencyConfig=config) for _ in range(2)]
    assert violations(*aliases) == []
    assert "1,350 concurrent executions of an account" in violations(*aliases, aliases[0])[0]
