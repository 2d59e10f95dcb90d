"""Keys and ids of APIs follow from the secret of the cloud."""

import re
from types import SimpleNamespace
from typing import Any

from asya_local.ministack.fixed_ids import install


def services(secret: str) -> tuple[Any, Any]:
    """Services with MiniStack's functions that draw at random."""
    numbers = iter(range(100))
    iam = SimpleNamespace(_access_keys={}, _IAM_HANDLERS={})

    def create(parameters: Any) -> Any:
        number = next(numbers)
        record = {
            "UserName": parameters["UserName"],
            "AccessKeyId": f"DRAWN{number}.",
            "SecretAccessKey": f"drawn{number}.",
        }
        iam._access_keys[record["AccessKeyId"]] = record
        return 200, {}, f"{record['AccessKeyId']} {record['SecretAccessKey']}".encode()

    iam._create_access_key = create
    apis = SimpleNamespace(_resolve_custom_api_id=lambda tags, _: tags.get("ms-custom-id"))
    install(iam, apis, secret)
    return iam, apis


def create_key(iam: Any, user: str) -> tuple[str, str]:
    status, _, body = iam._IAM_HANDLERS["CreateAccessKey"]({"UserName": user})
    assert status == 200
    key_id, key = body.decode().split()
    assert iam._access_keys[key_id] == {"UserName": user, "AccessKeyId": key_id, "SecretAccessKey": key}
    return key_id, key


def test_keys_are_those_of_the_user_and_of_the_secret() -> None:
    (iam, _), (again, _), (other, _) = services("secret"), services("secret"), services("other")
    first, second = create_key(iam, "ada"), create_key(iam, "ada")

    assert [
        create_key(again, "bob") != first,
        create_key(again, "ada") == first,
        create_key(again, "ada") == second,
    ] == [
        True,
        True,
        True,
    ]
    assert create_key(other, "ada") != first
    assert first[0].startswith("AKIA")
    assert len(first[0]) == 20
    assert len(first[1]) == 40


def test_a_key_that_was_deleted_comes_again() -> None:
    iam, _ = services("secret")
    key_id, key = create_key(iam, "ada")
    del iam._access_keys[key_id]
    assert create_key(iam, "ada") == (key_id, key)


def test_apis_have_the_ids_of_the_secret_in_their_order() -> None:
    _, apis = services("secret")
    first = apis._resolve_custom_api_id({}, {})
    second = apis._resolve_custom_api_id({}, {first: {}})
    assert first != second
    assert apis._resolve_custom_api_id({"ms-custom-id": "mine"}, {}) == "mine"
    _, again = services("secret")
    assert again._resolve_custom_api_id({}, {}) == first


def test_an_id_of_an_api_has_the_form_that_its_host_name_needs() -> None:
    """MiniStack takes `{id}.execute-api.localhost` for an API only with eight hexadecimal digits."""
    _, apis = services("secret")
    assert re.fullmatch("[0-9a-f]{8}", apis._resolve_custom_api_id({}, {}))
