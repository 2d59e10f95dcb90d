"""The demand of a mesh."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from asya_infra.assembly import Assembly
from asya_infra.preflight.demand import Demand, NamedResource, demand_of

STATE: dict[str, Any] = {
    "Resources": {
        "Table": {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": "asya-shop-tasks"}},
        "Bucket": {
            "Type": "AWS::S3::Bucket",
            "Properties": {
                "BucketName": {"Fn::Join": ["", ["asya-shop-", {"Ref": "AWS::AccountId"}, "-", {"Ref": "AWS::Region"}]]}
            },
        },
    }
}
FUNCTIONS: dict[str, Any] = {
    "Resources": {
        "Live": {
            "Type": "AWS::Lambda::Function",
            "Properties": {"FunctionName": "asya-shop-x-gateway-live", "ReservedConcurrentExecutions": 50},
        },
        "Bill": {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": "asya-shop-bill"}},
        "Warm": {
            "Type": "AWS::Lambda::Alias",
            "Properties": {"ProvisionedConcurrencyConfig": {"ProvisionedConcurrentExecutions": 3}},
        },
        "FeedA": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "ScalingConfig": {"MaximumConcurrency": 50},
                "BatchSize": 100,
                "EventSourceArn": {"Fn::Join": ["", ["arn:aws:sqs:", {"Ref": "AWS::Region"}, ":1:asya-shop-bill"]]},
            },
        },
        "FeedB": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "ScalingConfig": {"MaximumConcurrency": 20},
                "EventSourceArn": "arn:aws:sqs:eu-central-1:1:asya-shop-mail",
            },
        },
        "FeedC": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "ProvisionedPollerConfig": {"MinimumPollers": 2, "MaximumPollers": 5},
                "EventSourceArn": "arn:aws:sqs:eu-central-1:1:asya-shop-ship",
            },
        },
        "Stream": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {}},
        "Role": {"Type": "AWS::IAM::Role", "Properties": {}},
        "Access": {"Type": "AWS::IAM::ManagedPolicy", "Properties": {}},
        "Application": {
            "Type": "AWS::EMRServerless::Application",
            "Properties": {"MaximumCapacity": {"Cpu": "16 vCPU", "Memory": "128 GB"}},
        },
    }
}
TEMPLATES = {"Asya-shop-state": STATE, "Asya-shop-functions-0": FUNCTIONS}


ASSEMBLY = Assembly(
    Path("cdk.out"), "shop", TEMPLATES, bootstrap_parameter="/cdk-bootstrap/mine/version", bootstrap_version=6
)


def test_the_demand_is_the_sum_of_all_templates() -> None:
    demand = demand_of(ASSEMBLY)
    assert demand.namespace == "shop"
    assert demand.stacks == ("Asya-shop-functions-0", "Asya-shop-state")
    assert demand.reserved == {"asya-shop-x-gateway-live": 50}
    assert (demand.provisioned, demand.source_concurrency, demand.max_vcpu) == (3, 120, 16)
    # A provisioned poller starts 10 executions at once.
    assert demand.in_flight == {"asya-shop-bill": 5_000, "asya-shop-mail": 200, "asya-shop-ship": 500}
    assert (demand.roles, demand.policies) == (1, 1)
    assert (demand.bootstrap_version, demand.bootstrap_parameter) == (6, "/cdk-bootstrap/mine/version")


def test_names_get_the_account_and_the_region() -> None:
    named = demand_of(ASSEMBLY).named("123456789012", "eu-central-1")
    assert named == {
        NamedResource("table", "asya-shop-tasks"),
        NamedResource("bucket", "asya-shop-123456789012-eu-central-1"),
    }


def test_the_environment_of_the_stacks_is_known_only_if_they_name_it() -> None:
    free = demand_of(ASSEMBLY)
    assert (free.account, free.region) == (None, None)
    bound = demand_of(replace(ASSEMBLY, account="123456789012", region="eu-central-1"))
    assert (bound.account, bound.region) == ("123456789012", "eu-central-1")


def test_the_key_is_that_of_the_tables() -> None:
    assert demand_of(ASSEMBLY).kms_key is None
    table = {"Type": "AWS::DynamoDB::Table", "Properties": {"SSESpecification": {"KMSMasterKeyId": "arn:key"}}}
    encrypted = {**TEMPLATES, "Asya-shop-state": {"Resources": {"Table": table}}}
    assert demand_of(replace(ASSEMBLY, templates=encrypted)).kms_key == "arn:key"


def test_rules_send_events_to_queues_and_topics_not_to_functions() -> None:
    function, topic = {"Fn::GetAtt": ["Function", "Arn"]}, {"Ref": "Topic"}
    queue = {"Fn::Join": ["", ["arn:aws:sqs:", {"Ref": "AWS::Region"}, ":1:asya-shop-x-index"]]}
    for target, expected in ((function, False), (queue, True), (topic, True)):
        rule = {"Type": "AWS::Events::Rule", "Properties": {"Targets": [{"Id": "a", "Arn": target}]}}
        templates = {"Asya-shop-state": {"Resources": {"Rule": rule}}}
        assert demand_of(replace(ASSEMBLY, templates=templates)).sends_events is expected


def test_topics_subscriptions_and_job_roles_need_keys() -> None:
    def of(kind: str, **properties: Any) -> Demand:
        templates = {"Asya-shop-state": {"Resources": {"R": {"Type": kind, "Properties": properties}}}}
        return demand_of(replace(ASSEMBLY, templates=templates))

    assert of("AWS::Events::Rule", Targets=[{"Id": "a", "Arn": {"Ref": "Topic"}}]).sends_to_topics
    assert not of("AWS::Events::Rule", Targets=[{"Id": "a", "Arn": {"Fn::Join": ["", ["arn"]]}}]).sends_to_topics
    assert of("AWS::SNS::Subscription", RedrivePolicy={"deadLetterTargetArn": "arn"}).redrives
    for service, expected in (("lambda", False), ("emr-serverless", True)):
        principal = {"Service": f"{service}.amazonaws.com"}
        assert (
            of("AWS::IAM::Role", AssumeRolePolicyDocument={"Statement": [{"Principal": principal}]}).runs_jobs
            is expected
        )


def test_what_triggers_need_is_in_rules_and_in_the_bucket() -> None:
    """The rule for commits names the mesh's own bucket, which has the account in its name."""
    own = {"Fn::Join": ["", ["asya-shop-", {"Ref": "AWS::AccountId"}]]}

    def created(name: Any) -> dict[str, Any]:
        pattern = {"source": ["aws.s3"], "detail": {"bucket": {"name": [name]}}}
        return {"Type": "AWS::Events::Rule", "Properties": {"EventPattern": pattern, "Targets": []}}

    ordered = {
        "Type": "AWS::Events::Rule",
        "Properties": {"EventBusName": "shop", "EventPattern": {"source": ["shop"]}},
    }
    notified = {"QueueConfigurations": [{"Event": "s3:ObjectCreated:*"}]}
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"NotificationConfiguration": notified}}
    of_the_mesh = {"Type": "AWS::Events::EventBus", "Properties": {"Name": "asya-shop-links"}}
    linked = {"Type": "AWS::Events::Rule", "Properties": {"EventBusName": "asya-shop-links", "EventPattern": {}}}
    resources = {
        "F": of_the_mesh,
        "G": linked,
        "A": created("partner-files"),
        "B": created("partner-files"),
        "C": created(own),
        "D": ordered,
        "E": bucket,
    }
    demand = demand_of(replace(ASSEMBLY, templates={"Asya-shop-state": {"Resources": resources}}))
    assert (demand.event_buckets, demand.event_buses, demand.sends_objects) == (("partner-files",), ("shop",), True)
    plain = demand_of(ASSEMBLY)
    assert (plain.event_buckets, plain.event_buses, plain.sends_objects) == ((), (), False)
