"""The permissions of roles in the templates: targets of routes, and the access that the mesh file grants."""

import json
from typing import Any

import pytest

from asya.protocol import names
from asya.protocol.mesh_table import Actor, MeshTable, Sink
from asya.protocol.table_keys import TOKENS_KEY
from asya.sidecar.needs import READS_STATES
from asya_infra.addresses import Addresses
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.needs import Place, function_grants, grants
from tests.doubles.iam import Request, is_allowed

PLACE = Addresses(namespace="shop", partition="aws", region="r", account="1", url_suffix="amazonaws.com")
BUCKET = "arn:<Partition>:s3:::asya-shop-<AccountId>-<Region>"
SINK_TABLE = "arn:<Partition>:dynamodb:<Region>:<AccountId>:table/asya-shop-sink"


def declared(function: str, table: MeshTable) -> list[Grant]:
    """The permissions that the manifest of a function declares."""
    return function_grants(function, Place(addresses=PLACE, table=table))


def queue(actor: str) -> str:
    return f"arn:<Partition>:sqs:<Region>:<AccountId>:asya-shop-{actor}"


def statements(mesh: Any, actor: str, namespace: str = "shop") -> list[dict[str, Any]]:
    role = mesh.one("AWS::IAM::Role", RoleName=f"asya-{namespace}-{names.runner_of(actor)}-<Region>")
    return [each for policy in role["Policies"] for each in policy["PolicyDocument"]["Statement"]]


def listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def reads_secret_of_tokens(mesh: Any, actor: str, namespace: str = "shop") -> bool:
    """Whether an actor or a function may read the secret that signs stream tokens and links."""
    table = f"arn:aws:dynamodb:eu-west-1:111122223333:table/asya-{namespace}-sink"
    request = Request("dynamodb:GetItem", table, {"dynamodb:LeadingKeys": (TOKENS_KEY,)})
    return is_allowed(statements(mesh, actor, namespace), request)


def resources(mesh: Any, actor: str, action: str, namespace: str = "shop") -> set[str]:
    """The resources on which an actor may do this action."""
    return {
        resource
        for statement in statements(mesh, actor, namespace)
        if action in listed(statement["Action"]) and statement["Effect"] == "Allow"
        for resource in listed(statement["Resource"])
    }


# Where every actor may send.
CREW = ("x-sink", "x-sump", "x-checkpoint", "x-fan-in", "x-pause", "x-resume")
FAN_INS = ("x-fan-in", "gather")
EVERYWHERE = {"intake", "score", "crunch", "free", "gather", "approve", "audit", *CREW}


# What a function may send beside envelopes.
REPORTERS = ("intake", "crunch", "score", "free", "audit", "x-checkpoint", "x-resume", "x-dispatch", "x-completion")
ENDERS = ("x-sink", "x-sump", "x-fan-in", "gather", "x-pause", "approve", "x-clock")
# The functions that count the starts of their messages (`protocol §4.starts`).
COUNTERS = tuple(function for function in REPORTERS + ENDERS if function != "x-clock")


@pytest.mark.rule("1.who-may-be-sent-to", "4.report-queues.senders")
@pytest.mark.parametrize(
    ("actor", "targets"),
    [
        # From the tool's route, and the fan-in actors, because a slice may end at any actor.
        ("intake", {"crunch", "intake", "gather", *CREW}),
        # A heavy actor's sidecar makes envelopes pending; the completion sends its frames.
        ("crunch", {"x-dispatch", "crunch", "x-sink", "x-sump"}),
        # Declared.
        ("score", {"audit", "score", *CREW}),
        # In no tool's route: every actor.
        ("free", EVERYWHERE),
        ("x-checkpoint", EVERYWHERE),
        # The merged envelope goes on along any origin's route.
        ("x-fan-in", EVERYWHERE),
        ("gather", EVERYWHERE),
        # A paused envelope stays; one that cannot pause goes to an end actor.
        ("x-pause", {"x-pause", "x-sink", "x-sump"}),
        ("approve", {"approve", "x-sink", "x-sump"}),
        ("x-resume", EVERYWHERE),
        # What waits may belong to any actor of an earlier deployment. The other steps send to fan-in actors alone.
        ("x-clock", EVERYWHERE),
        # The end actors notify sets of slices that ended early.
        ("x-sink", {"free", "x-sink", "x-sump", *FAN_INS}),
        ("x-dispatch", {"x-dispatch", "x-completion", "x-sink", "x-sump"}),
        ("x-reconcile", {"x-dispatch", "x-completion"}),
        ("x-completion", {"score", "free", "crunch", "gather", "x-dispatch", "x-completion", "x-index", *CREW}),
        # A redrive may send to every queue that has dead letters.
        ("x-gateway-api", EVERYWHERE | {"x-index", "x-dispatch", "x-completion", "x-reports", "x-ends"}),
        ("x-push-feed", {"x-push", "x-push-dlq"}),
        ("x-push", set()),
        ("x-roles", set()),
        # A function that takes reports must not start a chain of calls.
        ("x-reports", set()),
    ],
)
def test_send_targets(shop: Any, actor: str, targets: set[str]) -> None:
    reports = {"x-reports"} if actor in REPORTERS + ENDERS else set()
    ends = {"x-ends"} if actor in ENDERS else set()
    # Whoever counts the starts of its messages gives one up by itself.
    letters = {f"{each}-dlq" for each in COUNTERS if names.runner_of(each) == actor}
    assert resources(shop, actor, "sqs:SendMessage") == {queue(target) for target in targets | reports | ends | letters}


@pytest.mark.rule("4.starts.mark", "4.starts.end")
def test_a_function_marks_and_gives_up_messages_of_its_own_queue_alone(shop: Any) -> None:
    for actor in COUNTERS:
        written = [
            key
            for statement in statements(shop, actor)
            if "dynamodb:UpdateItem" in listed(statement["Action"]) and SINK_TABLE in listed(statement["Resource"])
            for key in listed(
                statement.get("Condition", {}).get("ForAllValues:StringLike", {}).get("dynamodb:LeadingKeys", [])
            )
            if key.startswith("START#")
        ]
        own = [each for each in COUNTERS if names.runner_of(each) == names.runner_of(actor)]
        assert written == [f"START#{each}#*" for each in own], actor
        letters = {arn for arn in resources(shop, actor, "sqs:SendMessage") if str(arn).endswith("-dlq")}
        assert letters == {queue(f"{each}-dlq") for each in own}, actor


@pytest.mark.rule("4.report-queues.senders")
def test_only_the_crew_reports_ends(shop: Any, plain: Any, example: Any) -> None:
    """An end changes the outcome of a task, so no role with user code may send one, nor may a dispatcher.

    The gateway's API sends dead letters of ends again.
    """
    for mesh, namespace, enders in (
        (shop, "shop", {*map(names.runner_of, ENDERS)}),
        (
            plain,
            "plain-test",
            {"x-sink", "x-clock", "cool-down", "embargo", "x-wait", "sign-off"},
        ),
        (example, "flights", {"x-sink", "x-fan-in", "approve-report", "x-clock"}),
    ):
        arn = f"arn:<Partition>:sqs:<Region>:<AccountId>:asya-{namespace}-x-ends"
        may_send = {
            role["RoleName"].removeprefix(f"asya-{namespace}-").removesuffix("-<Region>")
            for role in mesh.resources("AWS::IAM::Role")
            for policy in role["Policies"]
            for statement in policy["PolicyDocument"]["Statement"]
            if "sqs:SendMessage" in listed(statement["Action"]) and arn in listed(statement["Resource"])
        }
        assert may_send == enders | {"x-gateway-api"}
        managed = [policy["PolicyDocument"] for policy in mesh.resources("AWS::IAM::ManagedPolicy")]
        assert arn not in json.dumps(managed)


def test_the_queues_of_reports_take_messages_by_role_alone(shop: Any) -> None:
    """A queue policy that allows a principal would let it send without a role of the mesh."""
    for policy in shop.resources("AWS::SQS::QueuePolicy"):
        if any("xreports" in each or "xends" in each for each in policy["Queues"]):
            assert {statement["Effect"] for statement in policy["PolicyDocument"]["Statement"]} == {"Deny"}


def test_no_role_sends_to_a_pattern_of_queues(shop: Any, plain: Any, example: Any) -> None:
    """`asya-shop-*` would also match the queues of the stages of `shop`."""
    for mesh in (shop, plain, example):
        for role in mesh.resources("AWS::IAM::Role"):
            for policy in role["Policies"]:
                for statement in policy["PolicyDocument"]["Statement"]:
                    if "sqs:SendMessage" in listed(statement["Action"]):
                        assert not any("*" in resource for resource in listed(statement["Resource"]))


def test_a_function_receives_only_from_its_own_queue(shop: Any) -> None:
    for actor in ("intake", "crunch", "audit", *CREW, "x-dispatch", "x-completion"):
        own = {"x-sink", "x-sump"} if actor in ("x-sink", "x-sump") else {actor}
        assert resources(shop, actor, "sqs:ReceiveMessage") == {*map(queue, own)}
        assert resources(shop, actor, "sqs:DeleteMessage") == {*map(queue, own)}
    assert resources(shop, "x-gateway-api", "sqs:ReceiveMessage") == set()
    for action in ("sqs:ReceiveMessage", "sqs:DeleteMessage"):
        assert resources(shop, "x-reports", action) == {queue("x-reports"), queue("x-ends")}


@pytest.mark.rule("4.report-queues.dead-letters")
def test_only_operators_reach_the_dead_letters_of_reports(shop: Any) -> None:
    documents = [policy["PolicyDocument"] for role in shop.resources("AWS::IAM::Role") for policy in role["Policies"]]
    documents += [policy["PolicyDocument"] for policy in shop.resources("AWS::IAM::ManagedPolicy")]
    for name in ("x-reports-dlq", "x-ends-dlq"):
        assert queue(name) not in json.dumps(documents)


def test_the_reports_function_writes_records_rows_of_ends_and_what_it_refuses(shop: Any) -> None:
    rows = f"{BUCKET}/results/index/recent/*"
    assert resources(shop, "x-reports", "s3:PutObject") == {f"{BUCKET}/reports/refused/*", rows}
    assert resources(shop, "x-reports", "s3:GetObject") == set()
    assert resources(shop, "x-reports", "execute-api:Invoke") == set()


@pytest.mark.rule("11.dlq")
def test_the_clock_receives_from_every_dead_letter_queue_and_cannot_delete(shop: Any) -> None:
    users = ("intake", "score", "crunch", "free", "gather", "approve", "audit")
    watched = (*users, *CREW, "x-index", "x-dispatch", "x-completion")
    assert resources(shop, "x-clock", "sqs:ReceiveMessage") == {queue(f"{actor}-dlq") for actor in watched}
    assert not any("sqs:DeleteMessage" in listed(each["Action"]) for each in statements(shop, "x-clock"))


def test_every_function_at_an_end_may_claim_it(shop: Any) -> None:
    table = "arn:<Partition>:dynamodb:<Region>:<AccountId>:table/asya-shop-sink"
    for actor in ("x-sink", "x-sump", "x-fan-in", "gather", "x-clock", "x-gateway-api"):
        assert table in resources(shop, actor, "dynamodb:UpdateItem"), actor


def test_an_end_can_be_claimed_and_not_replaced_or_deleted(shop: Any) -> None:
    """A claim names the end of an envelope that counts. A function that deletes a claim can end the envelope twice.

    x-sink and x-sump read it again after they have written the object, and the gateway before it cancels a task.
    """
    table = "arn:<Partition>:dynamodb:<Region>:<AccountId>:table/asya-shop-sink"
    for actor in ("x-sink", "x-sump", "x-fan-in", "gather", "x-gateway-api"):
        allowed = {
            action
            for statement in statements(shop, actor)
            if table in listed(statement["Resource"])
            and "ForAllValues:StringLike" not in statement.get("Condition", {})  # other items have keys of their own
            for action in listed(statement["Action"])
        }
        reads = {"dynamodb:GetItem"} if actor in ("x-sink", "x-sump", "x-gateway-api") else set()
        assert allowed == {"dynamodb:UpdateItem"} | reads, actor


def test_the_clock_cannot_write_claims(shop: Any) -> None:
    written = [each for each in statements(shop, "x-clock") if "dynamodb:PutItem" in listed(each["Action"])]
    (notes,) = [each for each in written if SINK_TABLE in listed(each["Resource"])]
    assert notes["Condition"]["ForAllValues:StringLike"] == {"dynamodb:LeadingKeys": ["DLQ#*", "LETTER#*"]}


def test_the_clock_receives_from_no_pattern_of_queues() -> None:
    """`asya-shop-*-dlq` would also match the queues of the stages of `shop`."""
    table = MeshTable(namespace="shop", actors={f"a{number}": Actor(kind="handler") for number in range(300)})
    received = [each for each in declared("x-clock", table) if "sqs:ReceiveMessage" in each.actions]
    assert len(received[0].resources) >= 300
    assert not any("*" in arn for arn in received[0].resources)


@pytest.mark.rule("11.sump.replaced")
@pytest.mark.parametrize(
    ("sink", "prefixes"),
    [
        (Sink(), {"succeeded/", "failed/"}),
        (
            Sink(layout="by-time", succeeded_prefix="happy-asya/", failed_prefix="error-asya/"),
            {"happy-asya/", "error-asya/"},
        ),
        (Sink(succeeded_prefix="ends/", failed_prefix="ends/"), {"ends/"}),
    ],
)
def test_x_sump_removes_ends_that_a_later_one_replaced_and_writes_no_results(sink: Sink, prefixes: set[str]) -> None:
    allowed = declared("x-sump", MeshTable(namespace="shop", actors={}, sink=sink))

    def results(action: str) -> set[str]:
        arns = {arn for grant in allowed if action in grant.actions for arn in grant.resources}
        return {arn.partition("/results/")[2] for arn in arns if "/results/" in arn}

    readable = {f"{prefix}*" for prefix in ("sump/", "canceled/", *prefixes)}
    assert results("s3:DeleteObject") == results("s3:GetObject") == readable
    # The end of a task that was canceled meanwhile is written as x-sink would.
    assert results("s3:PutObject") == {"sump/*", "superseded/*", "canceled/*"}


def test_the_gateway_reads_the_sources_of_replays(shop: Any) -> None:
    prefixes = ("hops", "dlq", "paused", "payloads", "inbox", "results")
    assert resources(shop, "x-gateway-api", "s3:GetObject") == {f"{BUCKET}/{prefix}/*" for prefix in prefixes}
    assert resources(shop, "x-gateway-api", "s3:ListBucket") == {BUCKET}


@pytest.mark.rule("13.states", "13.roles")
def test_functions_read_the_states_of_tasks_only_and_call_no_gateway(shop: Any) -> None:
    [reads] = grants(READS_STATES, "intake", Place(addresses=PLACE, table=MeshTable(namespace="shop", actors={})))
    tasks = "arn:<Partition>:dynamodb:<Region>:<AccountId>:table/asya-shop-tasks"
    asking = {*("intake", "crunch", "score", "free", "audit", "gather", "approve"), *("x-index", "x-fan-in", "x-pause")}
    asking |= {"x-checkpoint", "x-dispatch", "x-completion"}
    prefix = "asya-shop-"
    for role in shop.resources("AWS::IAM::Role"):
        function = role["RoleName"].removeprefix(prefix).removesuffix("-<Region>")
        assert resources(shop, function, "execute-api:Invoke") == set(), function
        if function in asking:
            found = [each for each in statements(shop, function) if tasks in each["Resource"]]
            assert [(listed(each["Action"]), each["Condition"]) for each in found] == [
                (list(reads.actions), reads.conditions)
            ], function


@pytest.mark.rule("4.roles", "4.entry.claim", "4.entry.moved.unseen")
@pytest.mark.parametrize("function", ["intake", "crunch", "audit", "x-checkpoint", "x-gateway-api"])
def test_who_judges_senders_reads_roles_and_claims_ids_only(shop: Any, function: str) -> None:
    keys: dict[str, set[str]] = {}
    for statement in statements(shop, function):
        # The gateway claims ends too.
        if SINK_TABLE in listed(statement["Resource"]) and "ForAllValues:StringLike" in statement.get("Condition", {}):
            for action in listed(statement["Action"]):
                leading = listed(statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"])
                keys.setdefault(action, set()).update(leading)
    marks = ["OUTAGE", f"START#{function}#*"] if function in COUNTERS else []
    notes = {} if function == "x-gateway-api" else {"dynamodb:PutItem": {f"LETTER#{function}#*"}}
    # The secret of the mesh is for functions without code of users; the others have one of their own.
    proofs = {f"KEY#{function}"} if function in ("intake", "audit") else {"KEY#", "OWNER#*"}
    assert keys == notes | {
        "dynamodb:GetItem": {"OUTAGE", "ROLE#*", "LETTER#*"} | proofs,
        "dynamodb:UpdateItem": {*marks, "OWNER#*"},
    }


def test_access_to_tables_secrets_and_by_statement(shop: Any) -> None:
    table = "arn:<Partition>:dynamodb:<Region>:<AccountId>:table/rates"
    assert resources(shop, "intake", "dynamodb:GetItem") == {table, f"{table}/index/*", SINK_TABLE}
    assert resources(shop, "intake", "dynamodb:PutItem") == {SINK_TABLE}
    secret = "arn:<Partition>:secretsmanager:<Region>:<AccountId>:secret:partner-key-??????"
    assert resources(shop, "intake", "secretsmanager:GetSecretValue") == {secret}
    # Beside the statement of the mesh file, the keys of buckets that the mesh does not own.
    keys = {"arn:aws:kms:eu-central-1:111122223333:key/abc", "arn:<Partition>:kms:*:*:key/*"}
    assert resources(shop, "intake", "kms:Decrypt") == keys


@pytest.mark.parametrize(
    ("actor", "tables"),
    [
        # Whoever receives envelopes notes their first senders in the table `sink`, under keys of its own.
        ("intake", {"sink"}),
        ("crunch", {"pending", "sink"}),
        ("audit", {"hops", "sink"}),
        ("score", {"breaker", "sink"}),
        ("x-sink", {"sink"}),
        ("x-sump", {"sink"}),
        ("x-checkpoint", {"sink"}),
        ("x-fan-in", {"fan-in", "sink"}),
        ("gather", {"fan-in", "sink"}),
        ("x-clock", {"sink", "tasks"}),
        ("approve", {"sink"}),
        ("x-resume", {"sink"}),
        ("x-dispatch", {"pending"}),
        ("x-completion", {"pending"}),
        ("x-reconcile", {"pending"}),
        ("x-reports", {"tasks"}),
        ("x-roles", {"sink"}),
        ("x-gateway-api", {"tasks", "fan-in"}),
        ("x-gateway-stream", set()),
        ("x-gateway-live", set()),
        ("x-operations", set()),
    ],
)
def test_tables(shop: Any, actor: str, tables: set[str]) -> None:
    arns = {f"arn:<Partition>:dynamodb:<Region>:<AccountId>:table/asya-shop-{table}" for table in tables}
    assert resources(shop, actor, "dynamodb:PutItem") == arns


def test_the_dispatcher_starts_runs_of_one_application_as_the_roles_of_its_actors(example: Any) -> None:
    application = "arn:<Partition>:emr-serverless:<Region>:<AccountId>:/applications/00abc123"
    assert resources(example, "x-dispatch", "emr-serverless:StartJobRun", "flights") == {application}
    runs = {f"{application}/jobruns/*"}
    assert resources(example, "x-dispatch", "emr-serverless:GetJobRun", "flights") == runs
    assert resources(example, "x-completion", "emr-serverless:CancelJobRun", "flights") == runs
    for unused in (
        ("x-dispatch", "CancelJobRun"),
        ("x-dispatch", "GetDashboardForJobRun"),
        ("x-reconcile", "ListJobRuns"),
    ):
        assert resources(example, unused[0], f"emr-serverless:{unused[1]}", "flights") == set(), unused
    passing = [each for each in statements(example, "x-dispatch", "flights") if each["Action"] == "iam:PassRole"]
    if not passing:
        passing = [each for each in statements(example, "x-dispatch", "flights") if "iam:PassRole" in each["Action"]]
    assert {arn for each in passing for arn in listed(each["Resource"])} == {
        f"arn:<Partition>:iam::<AccountId>:role/asya-flights-x-job-{actor}-<Region>"
        for actor in ("clean-flights", "delay-statistics", "x-index")
    }
    assert passing[0]["Condition"] == {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}
    for actor in ("x-completion", "clean-flights", "inspect-dataset", "x-sink"):
        assert resources(example, actor, "emr-serverless:StartJobRun", "flights") == set()
        assert resources(example, actor, "iam:PassRole", "flights") == set()


def test_each_heavy_actor_has_a_job_role_of_its_own(shop: Any) -> None:
    roles = {role["RoleName"] for role in shop.resources("AWS::IAM::Role") if "x-job" in role["RoleName"]}
    assert roles == {f"asya-shop-x-job-{actor}-<Region>" for actor in ("crunch", "x-index")}
    role = shop.one("AWS::IAM::Role", RoleName="asya-shop-x-job-crunch-<Region>")
    trusted = [each["Principal"] for each in role["AssumeRolePolicyDocument"]["Statement"]]
    assert trusted == [{"Service": "emr-serverless.amazonaws.com"}]
    scratch = {f"{BUCKET}/data/scratch/crunch", f"{BUCKET}/data/scratch/crunch/*"}
    for action in ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"):
        written = {f"{BUCKET}/runs/crunch/*/{folder}*" for folder in ("attempts", "batches", "logs")}
        assert resources(shop, "x-job-crunch", action) == written | scratch
    assert resources(shop, "x-job-crunch", "s3:GetObject") == scratch | {
        f"{BUCKET}/runs/crunch/*",
        f"{BUCKET}/pending/crunch/*",
        # The code of this and of earlier deployments: a run that a deployment overtakes loads its code still.
        "arn:<Partition>:s3:::cdk-hnb659fds-assets-<AccountId>-<Region>/asya-shop/*",
        "arn:<Partition>:s3:::partner-files/models.tar.gz",
    }


@pytest.mark.parametrize("actor", ["crunch", "x-index"])
def test_a_job_role_sends_no_message_and_reaches_no_table(shop: Any, actor: str) -> None:
    actions = {action for each in statements(shop, f"x-job-{actor}") for action in listed(each["Action"])}
    assert "s3:GetObject" in actions
    assert {action.partition(":")[0] for action in actions}.isdisjoint({"dynamodb", "execute-api", "lambda", "sqs"})


def test_a_job_role_has_the_access_policy_that_its_runs_name(shop: Any) -> None:
    role = shop.one("AWS::IAM::Role", RoleName="asya-shop-x-job-crunch-<Region>")
    (attached,) = role["ManagedPolicyArns"]
    policies = [
        (name, resource)
        for template in shop.templates.values()
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::IAM::ManagedPolicy"
    ]
    assert [r["Properties"]["ManagedPolicyName"] for name, r in policies if f"<{name}>" == attached] == [
        "<Region>-asya-shop-crunch-access"
    ]


def test_no_policy_is_of_aws_or_for_every_resource(shop: Any) -> None:
    for role in shop.resources("AWS::IAM::Role"):
        assert not any(":aws:policy/" in str(arn) for arn in role.get("ManagedPolicyArns", []))
    documents = [policy["PolicyDocument"] for role in shop.resources("AWS::IAM::Role") for policy in role["Policies"]]
    documents += [policy["PolicyDocument"] for policy in shop.resources("AWS::IAM::ManagedPolicy")]
    for document in documents:
        for statement in document["Statement"]:
            # IAM knows no resource of these calls, which read alone: the numbers of CloudWatch, and the list of mappings.
            has_no_resource = set(listed(statement["Action"])) <= {
                "cloudwatch:GetMetricData",
                "lambda:ListEventSourceMappings",
            }
            assert has_no_resource or "*" not in listed(statement["Resource"])
            assert not any("*" in action for action in listed(statement["Action"]))


@pytest.mark.rule("5.end-actors")
def test_an_end_actor_neither_routes_nor_reports() -> None:
    allowed = declared("audit", MeshTable(namespace="shop", actors={"audit": Actor(kind="end")}))
    sent = [resource for grant in allowed if "sqs:SendMessage" in grant.actions for resource in grant.resources]
    assert sorted(sent) == [f"arn:aws:sqs:r:1:asya-shop-{name}" for name in ("audit", "audit-dlq", "x-sink", "x-sump")]
    assert not any("execute-api:Invoke" in grant.actions for grant in allowed)


def test_a_permissions_boundary_limits_every_role(plain: Any, shop: Any) -> None:
    boundaries = {role.get("PermissionsBoundary") for role in plain.resources("AWS::IAM::Role")}
    assert boundaries == {"arn:<Partition>:iam::<AccountId>:policy/team/boundary"}
    assert {role.get("PermissionsBoundary") for role in shop.resources("AWS::IAM::Role")} == {None}
