"""What code of an actor tries with the credentials of its role: calls of AWS that would read, change, delay or deny others.

`undeclared` makes the calls that the matrix of a mesh has and the manifest does not declare. `BEYOND` has calls that no manifest
may declare.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asya.protocol.table_keys import SPECIAL_KEYS
from tests.doubles.iam_matrix import Matrix, OnItem, OnKeys, OnObject, OnQueue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.doubles.iam_matrix import Call

Attempt = tuple[str, str, dict[str, Any]]
"""Service, call of boto3, and its arguments as JSON."""
_OF_QUEUES = {
    "SendMessage": ("send_message", {"MessageBody": "{}"}),
    "ReceiveMessage": ("receive_message", {}),
    "DeleteMessage": ("delete_message", {"ReceiptHandle": "x"}),
    "ChangeMessageVisibility": ("change_message_visibility", {"ReceiptHandle": "x", "VisibilityTimeout": 0}),
    "GetQueueAttributes": ("get_queue_attributes", {}),
}


def undeclared(matrix: Matrix, actor: str) -> dict[str, list[Attempt]]:
    """The calls of the matrix that an actor does not declare, by service."""
    attempts: dict[str, list[Attempt]] = {"sqs": [], "dynamodb": [], "s3": []}
    for call in matrix.calls:
        if not matrix.declares(actor, call):
            for attempt in _attempts(call, matrix):
                attempts[attempt[0]].append(attempt)
    return attempts


def _attempts(call: Call, matrix: Matrix) -> Iterator[Attempt]:
    addresses = matrix.place.addresses
    if isinstance(call, OnQueue):
        name, arguments = _OF_QUEUES[call.call]
        yield (
            "sqs",
            name,
            {"QueueUrl": f"https://sqs/{addresses.account}/{_last(addresses.queue_arn(call.queue))}", **arguments},
        )
    elif isinstance(call, OnItem) and (len(call.keys) == 1 or call.call.startswith("Batch")):
        yield _of_items(call, _last(addresses.table_arn(call.table)))
    elif isinstance(call, OnObject | OnKeys):
        resource = call.request(matrix.place)
        bucket, _, key = resource.resource.rpartition(":::")[2].partition("/")
        if isinstance(call, OnKeys):
            yield "s3", "list_objects_v2", {"Bucket": bucket, "Prefix": str(resource.context["s3:prefix"])}
        else:
            body = {"Body": "{}"} if call.call == "PutObject" else {}
            name = {"GetObject": "get_object", "PutObject": "put_object", "DeleteObject": "delete_object"}[call.call]
            yield "s3", name, {"Bucket": bucket, "Key": key, **body}


def _of_items(call: OnItem, table: str) -> Attempt:
    keys = [{"pk": {"S": key}, "sk": {"S": "x"}} for key in call.keys or ("4711",)]
    first = {"TableName": table, "Key": keys[0]}
    read: dict[str, Any] = {"Keys": keys}
    if call.attributes:
        names = {f"#{number}": name for number, name in enumerate(call.attributes)}
        read |= {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
    arguments: dict[str, tuple[str, dict[str, Any]]] = {
        "GetItem": ("get_item", first),
        "DeleteItem": ("delete_item", first),
        "PutItem": ("put_item", {"TableName": table, "Item": keys[0]}),
        "UpdateItem": ("update_item", {**first, "ReturnValues": "ALL_OLD"}),
        "BatchGetItem": ("batch_get_item", {"RequestItems": {table: read}}),
        "BatchWriteItem": (
            "batch_write_item",
            {"RequestItems": {table: [{"DeleteRequest": {"Key": key}} for key in keys]}},
        ),
        "Query": (
            "query",
            {
                "TableName": table,
                "KeyConditionExpression": "pk = :pk",
                "ExpressionAttributeValues": {":pk": keys[0]["pk"]},
                **({"IndexName": call.index} if call.index else {}),
            },
        ),
    }
    return ("dynamodb", *arguments[call.call])


def _last(arn: str) -> str:
    return arn.replace("/", ":").rpartition(":")[2]


def beyond(matrix: Matrix) -> list[Attempt]:
    """Calls that no function of the mesh may make, whatever its manifest says."""
    addresses = matrix.place.addresses
    role = addresses.arn("iam", "role/asya-gateway-x-sink-us-east-1")
    queue = {"QueueUrl": f"https://sqs/{addresses.account}/asya-gateway-echo"}
    table, function = {"TableName": "asya-gateway-tasks"}, {"FunctionName": "asya-gateway-x-sink"}
    bucket, group = {"Bucket": addresses.bucket}, {"logGroupName": "/aws/lambda/asya-gateway-echo"}
    one = {**bucket, "Key": "payloads/echo/x"}
    statement = {"Statement": 'SELECT * FROM "asya-gateway-tasks"'}
    check = {
        "ConditionCheck": {
            **table,
            "Key": {"pk": {"S": "t"}, "sk": {"S": "record"}},
            "ConditionExpression": "attribute_exists(pk)",
        }
    }
    return [
        *(("sqs", call, queue) for call in ("purge_queue", "delete_queue", "list_queue_tags")),
        ("sqs", "set_queue_attributes", {**queue, "Attributes": {"VisibilityTimeout": "0"}}),
        ("sqs", "start_message_move_task", {"SourceArn": addresses.dlq_arn("echo")}),
        ("sqs", "list_queues", {}),
        *(("dynamodb", call, table) for call in ("scan", "describe_table", "delete_table")),
        ("dynamodb", "execute_statement", statement),
        ("dynamodb", "batch_execute_statement", {"Statements": [statement]}),
        ("dynamodb", "transact_write_items", {"TransactItems": [check]}),
        (
            "dynamodb",
            "transact_get_items",
            {"TransactItems": [{"Get": {**table, "Key": {"pk": {"S": "t"}, "sk": {"S": "record"}}}}]},
        ),
        *(
            ("s3", call, {**bucket, "Prefix": "payloads/intrude/"})
            for call in ("list_object_versions", "list_multipart_uploads")
        ),
        *(
            ("s3", call, bucket)
            for call in ("get_bucket_policy", "delete_bucket_policy", "get_bucket_notification_configuration")
        ),
        ("s3", "put_bucket_versioning", {**bucket, "VersioningConfiguration": {"Status": "Suspended"}}),
        ("s3", "copy_object", {**bucket, "Key": "payloads/echo/y", "CopySource": f"{addresses.bucket}/results/x"}),
        ("s3", "get_object", {**one, "VersionId": "null"}),
        ("s3", "list_parts", {**one, "UploadId": "x"}),
        *(("s3", call, one) for call in ("get_object_tagging", "get_object_acl")),
        ("s3", "put_object_acl", {**one, "ACL": "public-read"}),
        ("s3", "create_multipart_upload", {**bucket, "Key": "results/x"}),
        ("s3", "list_buckets", {}),
        *(("lambda", call, function) for call in ("invoke", "get_function", "delete_function", "get_policy")),
        ("lambda", "put_function_concurrency", {**function, "ReservedConcurrentExecutions": 0}),
        ("lambda", "list_event_source_mappings", {}),
        ("sts", "assume_role", {"RoleArn": role, "RoleSessionName": "intrude"}),
        ("iam", "get_role", {"RoleName": role.rpartition("/")[2]}),
        ("iam", "create_access_key", {"UserName": "alice"}),
        ("secretsmanager", "get_secret_value", {"SecretId": "vault/key"}),
        ("secretsmanager", "list_secrets", {}),
        ("ssm", "get_parameter", {"Name": "/vault/token", "WithDecryption": True}),
        ("logs", "filter_log_events", group),
        ("logs", "create_log_stream", {**group, "logStreamName": "x"}),
        ("kms", "list_keys", {}),
        ("events", "put_events", {"Entries": [{"Source": "asya", "DetailType": "x", "Detail": "{}"}]}),
        ("scheduler", "list_schedules", {}),
        ("apigatewayv2", "get_apis", {}),
        ("cloudformation", "describe_stacks", {}),
        ("emr-serverless", "list_applications", {}),
        ("cloudwatch", "put_metric_data", {"Namespace": "Asya", "MetricData": [{"MetricName": "x", "Value": 1}]}),
    ]


_STATEMENTS = (
    "SELECT * FROM \"{table}\" WHERE pk = '{key}'",
    "UPDATE \"{table}\" SET x = '1' WHERE pk = '{key}' AND sk = 'x'",
    "INSERT INTO \"{table}\" VALUE {{'pk': '{key}', 'sk': 'x'}}",
    "DELETE FROM \"{table}\" WHERE pk = '{key}' AND sk = 'x'",
)


def statements() -> list[Attempt]:
    """The reads and writes of items by PartiQL, in each of its three calls."""
    keys = [*(key.removesuffix("*") + "x" for key in SPECIAL_KEYS), "t"]
    places = [("sink", key) for key in keys] + [("tasks", "t"), ("hops", "echo#t")]
    texts = [text.format(table=f"asya-gateway-{table}", key=key) for table, key in places for text in _STATEMENTS]
    return [
        attempt
        for text in texts
        for attempt in (
            ("dynamodb", "execute_statement", {"Statement": text}),
            ("dynamodb", "batch_execute_statement", {"Statements": [{"Statement": text}]}),
            ("dynamodb", "execute_transaction", {"TransactStatements": [{"Statement": text}]}),
        )
    ]
