"""What each kind of function needs, and what it could reach only by a mistake in its permissions.

The calls name the resources of the mesh `shop` of the template tests, in one account and region.
"""

BUCKET = "arn:aws:s3:::asya-shop-111122223333-eu-west-1"
STAGE_BUCKET = "arn:aws:s3:::asya-shop-test-111122223333-eu-west-1"


DIGEST = "ab" * 32


def sqs(name: str) -> str:
    return f"arn:aws:sqs:eu-west-1:111122223333:{name}"


def table(name: str) -> str:
    return f"arn:aws:dynamodb:eu-west-1:111122223333:table/{name}"


def secret(name: str) -> str:
    return f"arn:aws:secretsmanager:eu-west-1:111122223333:secret:{name}"


def parameter(name: str) -> str:
    return f"arn:aws:ssm:eu-west-1:111122223333:parameter/{name}"


def role_arn(name: str) -> str:
    return f"arn:aws:iam::111122223333:role/{name}-eu-west-1"


def log_streams(function: str) -> str:
    return f"arn:aws:logs:eu-west-1:111122223333:log-group:/aws/lambda/{function}:*"


SEARCH = "logs:FilterLogEvents"
SEND, RECEIVE, DELETE = "sqs:SendMessage", "sqs:ReceiveMessage", "sqs:DeleteMessage"
GET, PUT, LIST, REMOVE = "s3:GetObject", "s3:PutObject", "s3:ListBucket", "s3:DeleteObject"
READ_ITEM, WRITE_ITEM, UPDATE_ITEM, DELETE_ITEM = (
    f"dynamodb:{verb}Item" for verb in ("Get", "Put", "Update", "Delete")
)
SECRET, PARAMETER = "secretsmanager:GetSecretValue", "ssm:GetParameter"
START, PASS = "emr-serverless:StartJobRun", "iam:PassRole"
TO_EMR = {"iam:PassedToService": "emr-serverless.amazonaws.com"}

NEEDED = {
    "intake": [
        (RECEIVE, sqs("asya-shop-intake")),
        (SEND, sqs("asya-shop-crunch")),
        (SEND, sqs("asya-shop-x-sink")),
        (GET, f"{BUCKET}/data/raw/a.csv"),
        (PUT, f"{BUCKET}/data/clean/a.csv"),
        (PUT, f"{BUCKET}/payloads/crunch/ab/abc.json"),
        (PUT, f"{BUCKET}/payloads/x-sink/ab/abc.json"),
        (GET, f"{BUCKET}/payloads/intake/ab/abc.json"),
        (GET, f"{BUCKET}/inbox/intake/ab/abc.json"),
        (PUT, f"{BUCKET}/buffered/intake/x/0/1.json"),
        (GET, f"{BUCKET}/buffered/intake/x/0/1.json"),
        (READ_ITEM, table("rates")),
        (SEND, sqs("asya-shop-x-reports")),
    ],
    "score": [
        (SEND, sqs("asya-shop-audit")),
        (WRITE_ITEM, table("asya-shop-breaker")),
        (SECRET, secret("shop/rates-a1B2c3")),
        (PARAMETER, parameter("shop/token")),
    ],
    "audit": [(WRITE_ITEM, table("asya-shop-hops")), (PUT, f"{BUCKET}/hops/x")],
    "crunch": [
        (SEND, sqs("asya-shop-x-dispatch")),
        (WRITE_ITEM, table("asya-shop-pending")),
        (PUT, f"{BUCKET}/pending/crunch/abc.json"),
        (SEND, sqs("asya-shop-x-reports")),
    ],
    "gather": [
        (SEND, sqs("asya-shop-score")),
        (WRITE_ITEM, table("asya-shop-fan-in")),
        (PUT, f"{BUCKET}/slices/x/000001-ab.json"),
        (GET, f"{BUCKET}/slices/x/000001-ab.json"),
        (GET, f"{BUCKET}/buffered/intake/x/0/1.json"),
        (PUT, f"{BUCKET}/results/superseded/a/0/1-succeeded-ab.json"),
        (SEND, sqs("asya-shop-x-ends")),
    ],
    "approve": [
        (SEND, sqs("asya-shop-x-sink")),
        (PUT, f"{BUCKET}/paused/x"),
        (UPDATE_ITEM, table("asya-shop-sink")),
        (SEND, sqs("asya-shop-x-ends")),
    ],
    "x-sink": [
        (UPDATE_ITEM, table("asya-shop-sink")),
        (READ_ITEM, table("asya-shop-sink")),
        (PUT, f"{BUCKET}/results/succeeded/a.json"),
        (GET, f"{BUCKET}/results/succeeded/a.json"),
        (REMOVE, f"{BUCKET}/results/failed/a.json"),
        (GET, f"{BUCKET}/payloads/intake/ab/{DIGEST}.json"),
        (PUT, f"{BUCKET}/results/superseded/a/0/1-failed-ab.json"),
        (SEND, sqs("asya-shop-x-ends")),
    ],
    "x-sump": [
        (UPDATE_ITEM, table("asya-shop-sink")),
        (READ_ITEM, table("asya-shop-sink")),
        (PUT, f"{BUCKET}/results/sump/a.json"),
        (PUT, f"{BUCKET}/results/canceled/a.json"),
        (GET, f"{BUCKET}/results/sump/a.json"),
        (REMOVE, f"{BUCKET}/results/sump/a.json"),
        *(
            (action, f"{BUCKET}/results/{prefix}/a.json")
            for prefix in ("succeeded", "failed", "canceled")
            for action in (GET, REMOVE)
        ),
        (PUT, f"{BUCKET}/results/superseded/a/0/1-failed-ab.json"),
        (SEND, sqs("asya-shop-x-ends")),
    ],
    "x-checkpoint": [(PUT, f"{BUCKET}/results/checkpoint/a.json"), (SEND, sqs("asya-shop-intake"))],
    "x-resume": [(SEND, sqs("asya-shop-intake")), (GET, f"{BUCKET}/paused/x")],
    "x-dispatch": [(WRITE_ITEM, table("asya-shop-pending")), (SEND, sqs("asya-shop-x-completion"))],
    "x-completion": [(SEND, sqs("asya-shop-score")), (GET, f"{BUCKET}/runs/crunch/0000000001/commit.json")],
    "x-reconcile": [(SEND, sqs("asya-shop-x-dispatch")), (READ_ITEM, table("asya-shop-pending"))],
    "x-dlq": [
        (RECEIVE, sqs("asya-shop-intake-dlq")),
        (UPDATE_ITEM, table("asya-shop-sink")),
        (SEND, sqs("asya-shop-x-ends")),
    ],
    "x-reports": [
        (RECEIVE, sqs("asya-shop-x-reports")),
        (DELETE, sqs("asya-shop-x-reports")),
        (RECEIVE, sqs("asya-shop-x-ends")),
        (DELETE, sqs("asya-shop-x-ends")),
        (WRITE_ITEM, table("asya-shop-tasks")),
        (PUT, f"{BUCKET}/reports/refused/x.json"),
        (READ_ITEM, table("asya-shop-sink")),
    ],
    "x-roles": [(WRITE_ITEM, table("asya-shop-sink"))],
    "x-gateway-api": [
        (WRITE_ITEM, table("asya-shop-tasks")),
        (UPDATE_ITEM, table("asya-shop-sink")),
        (READ_ITEM, table("asya-shop-sink")),
        (SEND, sqs("asya-shop-intake")),
        (SEND, sqs("asya-shop-x-sump")),
        (SEND, sqs("asya-shop-x-ends")),
    ],
    "x-gateway-ingest": [(WRITE_ITEM, table("asya-shop-tasks"))],
    "x-gateway-stream": [("dynamodb:Query", table("asya-shop-tasks"))],
    "x-operations": [
        (RECEIVE, sqs("asya-shop-intake-dlq")),
        ("sqs:GetQueueAttributes", sqs("asya-shop-intake")),
        ("dynamodb:Query", table("asya-shop-tasks")),
        (READ_ITEM, table("asya-shop-breaker")),
        (READ_ITEM, table("asya-shop-pending")),
        (GET, f"{BUCKET}/runs/crunch/0000000001/manifest.json"),
    ],
    "x-logs": [
        ("dynamodb:Query", table("asya-shop-tasks")),
        (READ_ITEM, table("asya-shop-pending")),
        (SEARCH, log_streams("asya-shop-intake")),
        (SEARCH, log_streams("asya-shop-x-sink")),
        (GET, f"{BUCKET}/runs/crunch/0000000001/logs/applications/00a/jobs/00b/SPARK_DRIVER/stderr.gz"),
    ],
    "x-task-sweep": [(WRITE_ITEM, table("asya-shop-tasks"))],
    "x-fan-in-sweep": [(SEND, sqs("asya-shop-gather"))],
    "x-pause-sweep": [
        (SEND, sqs("asya-shop-x-resume")),
        (SEND, sqs("asya-shop-intake")),  # its envelope may have waited before a deployment
        (GET, f"{BUCKET}/waiting/e/0/1-1.json"),
    ],
    "x-push-feed": [(SEND, sqs("asya-shop-x-push"))],
    "x-push": [(READ_ITEM, table("asya-shop-tasks"))],
    "x-job-crunch": [
        (GET, f"{BUCKET}/runs/crunch/0000000001/manifest.json"),
        (PUT, f"{BUCKET}/runs/crunch/0000000001/attempts/a/part-0"),
        (REMOVE, f"{BUCKET}/runs/crunch/0000000001/attempts/a/"),
        (PUT, f"{BUCKET}/runs/crunch/0000000001/logs/applications/00a/jobs/00b/SPARK_DRIVER/stderr.gz"),
        (GET, f"{BUCKET}/pending/crunch/abc.json"),
        (GET, f"{BUCKET}/data/clean/part-0.parquet"),
        (PUT, f"{BUCKET}/data/stats/part-0.parquet"),
        (GET, "arn:aws:s3:::cdk-hnb659fds-assets-111122223333-eu-west-1/asya-shop/abc.zip"),
        (SECRET, secret("shop/crunch-a1B2c3")),
    ],
}

# A neighbour of each function: what it could reach only by a mistake in its permissions.
FORBIDDEN = {
    "intake": [
        (RECEIVE, sqs("asya-shop-score")),
        (SEND, sqs("asya-shop-score")),
        (SEND, sqs("asya-shop-x-completion")),
        (SEND, sqs("asya-shop-crunch-dlq")),
        (SEND, sqs("asya-shop-x-ends")),
        (RECEIVE, sqs("asya-shop-x-reports")),
        (PUT, f"{BUCKET}/reports/refused/x.json"),
        (GET, f"{BUCKET}/data/stats/a.csv"),
        (PUT, f"{BUCKET}/data/raw/a.csv"),
        (GET, f"{BUCKET}/payloads/crunch/ab/{DIGEST}.json"),
        (GET, f"{BUCKET}/inbox/crunch/ab/{DIGEST}.json"),
        (GET, f"{BUCKET}/payloads/ab/cd/{DIGEST}.json"),
        (GET, f"{BUCKET}/inbox/ab/cd/{DIGEST}.json"),
        (GET, f"{BUCKET}/buffered/crunch/x/0/1.json"),
        (PUT, f"{BUCKET}/buffered/crunch/x/0/1.json"),
        (GET, f"{BUCKET}/hops/x/0/1.json"),
        (PUT, f"{BUCKET}/hops/x/0/1.json"),
        (PUT, f"{BUCKET}/payloads/audit/ab/{DIGEST}.json"),
        (PUT, f"{BUCKET}/slices/x/000001-ab.json"),
        (GET, f"{BUCKET}/slices/x/000001-ab.json"),
        (GET, f"{BUCKET}/paused/x/0/1.json"),
        (LIST, BUCKET),
        (PUT, f"{BUCKET}/runs/crunch/0000000001/commit.json"),
        (PUT, f"{BUCKET}/results/succeeded/a.json"),
        (WRITE_ITEM, table("rates")),
        (READ_ITEM, table("asya-shop-sink")),
        (START, "arn:aws:emr-serverless:eu-west-1:111122223333:/applications/00a"),
    ],
    "score": [
        (SEND, sqs("asya-shop-intake")),
        (GET, f"{BUCKET}/data/raw/a.csv"),
        (SECRET, secret("shop/rates-test-a1B2c3")),
        (SECRET, secret("partner-key-a1B2c3")),
        (PARAMETER, parameter("shop/token/other")),
        (SEND, sqs("asya-shop-x-ends")),
    ],
    "audit": [
        (DELETE_ITEM, table("asya-shop-hops")),
        (GET, f"{BUCKET}/hops/x/0/1.json"),
        (SEND, sqs("asya-shop-x-ends")),
        (SECRET, secret("shop/rates-a1B2c3")),
        (PARAMETER, parameter("shop/token")),
    ],
    "crunch": [
        (SEND, sqs("asya-shop-score")),
        (SEND, sqs("asya-shop-x-ends")),
        (GET, f"{BUCKET}/data/clean/a"),
        (PUT, f"{BUCKET}/pending/x-index/abc.json"),
        (PASS, role_arn("asya-shop-x-job-crunch")),
        (SECRET, secret("shop/crunch-a1B2c3")),
    ],
    "gather": [
        (READ_ITEM, table("asya-shop-sink")),
        (DELETE_ITEM, table("asya-shop-sink")),
        (PUT, f"{BUCKET}/results/succeeded/a.json"),
        (GET, f"{BUCKET}/results/superseded/a/0/1-succeeded-ab.json"),
    ],
    "approve": [(SEND, sqs("asya-shop-intake")), (PUT, f"{BUCKET}/results/succeeded/a.json")],
    "x-sink": [(DELETE_ITEM, table("asya-shop-sink")), (SEND, sqs("asya-shop-intake"))],
    "x-sump": [
        *((PUT, f"{BUCKET}/results/{prefix}/a.json") for prefix in ("succeeded", "failed")),
        (GET, f"{BUCKET}/results/checkpoint/a/0.json"),
        (REMOVE, f"{BUCKET}/results/superseded/a/0/1-failed-ab.json"),
        (REMOVE, f"{BUCKET}/results/index/recent/dt=2026-01-01/ab.jsonl"),
        (SEND, sqs("asya-shop-x-sink")),
    ],
    "x-checkpoint": [(PUT, f"{BUCKET}/results/succeeded/a.json"), (SEND, sqs("asya-shop-x-ends"))],
    "x-resume": [(WRITE_ITEM, table("asya-shop-tasks")), (SEND, sqs("asya-shop-x-ends"))],
    "x-dispatch": [
        (GET, f"{BUCKET}/payloads/intake/ab/{DIGEST}.json"),
        (SEND, sqs("asya-shop-intake")),
        (PASS, role_arn("asya-shop-intake")),
        (PASS, role_arn("asya-shop-x-sink")),
        (SEND, sqs("asya-shop-x-ends")),
    ],
    "x-completion": [
        (START, "arn:aws:emr-serverless:eu-west-1:111122223333:/applications/00a"),
        (SEND, sqs("asya-shop-x-ends")),
        (GET, f"{BUCKET}/payloads/intake/ab/{DIGEST}.json"),
        # The dispatcher alone forms runs.
        (PUT, f"{BUCKET}/runs/crunch/0000000001/manifest.json"),
    ],
    "x-reconcile": [(SEND, sqs("asya-shop-intake"))],
    "x-dlq": [
        (DELETE, sqs("asya-shop-intake-dlq")),
        (RECEIVE, sqs("asya-shop-intake")),
        (RECEIVE, sqs("asya-shop-x-ends-dlq")),
    ],
    "x-reports": [
        (SEND, sqs("asya-shop-intake")),
        (SEND, sqs("asya-shop-x-reports")),
        (RECEIVE, sqs("asya-shop-x-reports-dlq")),
        (WRITE_ITEM, table("asya-shop-sink")),
        (PUT, f"{BUCKET}/dlq/x.json"),
        (GET, f"{BUCKET}/reports/refused/x.json"),
    ],
    "x-gateway-api": [
        (RECEIVE, sqs("asya-shop-intake")),
        (SEND, sqs("asya-shop-intake-dlq")),
    ],
    "x-roles": [
        (READ_ITEM, table("asya-shop-sink")),
        (WRITE_ITEM, table("asya-shop-tasks")),
        (SEND, sqs("asya-shop-intake")),
    ],
    "x-gateway-ingest": [(SEND, sqs("asya-shop-intake")), (READ_ITEM, table("asya-shop-sink"))],
    "x-gateway-stream": [(WRITE_ITEM, table("asya-shop-tasks"))],
    "x-operations": [
        (WRITE_ITEM, table("asya-shop-pending")),
        (WRITE_ITEM, table("asya-shop-tasks")),
        (DELETE, sqs("asya-shop-intake-dlq")),
        (RECEIVE, sqs("asya-shop-intake")),
        (SEND, sqs("asya-shop-intake")),
        (PUT, f"{BUCKET}/runs/crunch/0000000001/manifest.json"),
        (GET, f"{BUCKET}/hops/x/0/1.json"),
        (SEARCH, log_streams("asya-shop-intake")),
    ],
    "x-logs": [
        (WRITE_ITEM, table("asya-shop-tasks")),
        (RECEIVE, sqs("asya-shop-intake-dlq")),
        (GET, f"{BUCKET}/runs/crunch/0000000001/manifest.json"),
        (GET, f"{BUCKET}/hops/x/0/1.json"),
        (SEARCH, log_streams("asya-shop-test-intake")),
    ],
    "x-task-sweep": [(SEND, sqs("asya-shop-intake"))],
    "x-fan-in-sweep": [(WRITE_ITEM, table("asya-shop-fan-in"))],
    "x-pause-sweep": [(SEND, sqs("asya-shop-x-ends")), (PUT, f"{BUCKET}/paused/e/0/1.json")],
    "x-push-feed": [(WRITE_ITEM, table("asya-shop-tasks"))],
    "x-push": [(WRITE_ITEM, table("asya-shop-tasks")), (SEND, sqs("asya-shop-intake"))],
    "x-job-crunch": [
        (GET, f"{BUCKET}/runs/x-index/0000000001/manifest.json"),
        (PUT, f"{BUCKET}/runs/crunch/0000000001/manifest.json"),
        (REMOVE, f"{BUCKET}/runs/crunch/0000000001/manifest.json"),
        (GET, f"{BUCKET}/pending/other/abc.json"),
        (PUT, f"{BUCKET}/pending/crunch/abc.json"),
        (PUT, f"{BUCKET}/results/index/days/x"),
        (REMOVE, f"{BUCKET}/data/clean/part-0.parquet"),
        (GET, "arn:aws:s3:::cdk-hnb659fds-assets-111122223333-eu-west-1/asya-shop-test/abc.zip"),
        (SEND, sqs("asya-shop-intake")),
    ],
}
