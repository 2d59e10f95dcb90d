"""Permissions for the customer managed key, derived from the other permissions of a role."""

from asya.needs import Need, lists, reads, sends, writes
from asya.needs import uses as uses_table
from asya.protocol.mesh_table import MeshTable
from asya.sidecar.needs import CLAIMS
from asya_infra.addresses import Addresses
from asya_infra.permissions.encryption import decrypt_variables, use_key
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.needs import Place, grants, write_logs

KEY = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ADDRESSES = Addresses(
    namespace="shop",
    partition="aws",
    region="eu-west-1",
    account="111122223333",
    url_suffix="amazonaws.com",
    results_bucket="the-results",
)


def grant(need: Need) -> Grant:
    """The permission for a need of the actor `bill`."""
    [only] = grants(need, "bill", Place(addresses=ADDRESSES, table=MeshTable(namespace="shop", actors={})))
    return only


def uses(*allowed: Grant) -> dict[str, list[str]]:
    """The services through which a role may use the key, by action."""
    statements = [grant.statement() for grant in use_key(KEY, allowed, ADDRESSES)]
    assert all(statement["Resource"] == [KEY] for statement in statements)
    return {
        statement["Action"][0].removeprefix("kms:"): [
            service.removesuffix(".eu-west-1.amazonaws.com")
            for service in statement["Condition"]["StringEquals"]["kms:ViaService"]
        ]
        for statement in statements
    }


def test_readers_decrypt() -> None:
    assert uses(grant(reads("inbox/*"))) == {"Decrypt": ["s3"]}
    assert uses(Grant(("sqs:ReceiveMessage",), (ADDRESSES.queue_arn("bill"),))) == {"Decrypt": ["sqs"]}


def test_writers_also_generate_data_keys() -> None:
    assert uses(grant(writes("dlq/*"))) == {"Decrypt": ["s3"], "GenerateDataKey": ["s3"]}
    assert uses(grant(sends("bill"))) == {"Decrypt": ["sqs"], "GenerateDataKey": ["sqs"]}


def test_dynamodb_only_decrypts_the_key_of_the_table() -> None:
    index = Grant(("dynamodb:Query",), (f"{ADDRESSES.table_arn('tasks')}/index/due",))
    for each in (grant(uses_table("tasks")), grant(CLAIMS), index):
        assert uses(each) == {"Decrypt": ["dynamodb"]}


def test_the_services_of_all_grants_are_in_one_statement() -> None:
    allowed = (grant(uses_table("tasks")), grant(reads("hops/*")))
    assert uses(*allowed, grant(sends("bill"))) == {
        "Decrypt": ["dynamodb", "s3", "sqs"],
        "GenerateDataKey": ["sqs"],
    }


def test_an_existing_bucket_of_the_mesh_may_have_the_same_key() -> None:
    assert uses(Grant(("s3:GetObject",), ("arn:aws:s3:::the-results/succeeded/*",))) == {"Decrypt": ["s3"]}


def test_what_does_not_belong_to_the_mesh_counts_for_nothing() -> None:
    others = (
        write_logs(ADDRESSES, "bill"),
        grant(lists("runs/*")),
        Grant(("s3:GetObject",), ("arn:aws:s3:::partner-files/*",)),
        Grant(("dynamodb:GetItem",), (ADDRESSES.arn("dynamodb", "table/rates"),)),
        Grant(("sqs:SendMessage",), (ADDRESSES.arn("sqs", "other"),)),
    )
    assert uses(*others) == {}


def test_a_denial_gives_nothing() -> None:
    denial = Grant(("s3:GetObject",), (ADDRESSES.objects_arn(ADDRESSES.bucket, "x"),), effect="Deny")
    assert uses(denial) == {}


def test_the_environment_variables_of_one_function() -> None:
    [statement] = [grant.statement() for grant in decrypt_variables(KEY, ADDRESSES, "bill")]
    assert statement["Action"] == ["kms:Decrypt"]
    assert statement["Condition"] == {
        "StringEquals": {
            "kms:EncryptionContext:aws:lambda:FunctionArn": "arn:aws:lambda:eu-west-1:111122223333:function:asya-shop-bill"
        }
    }


def test_without_a_key_there_is_nothing_to_use() -> None:
    assert use_key(None, [grant(uses_table("tasks"))], ADDRESSES) == []
    assert decrypt_variables(None, ADDRESSES, "bill") == []
