"""The function that lists the roles of a stack (`protocol §4.roles`)."""

import pytest
from botocore.exceptions import ClientError

from asya.protocol.task_key import SECRET_BYTES, actor_secret
from asya.senders.aws.key_items import KeyItems
from asya.senders.aws.role_list import RoleItems
from asya.senders.lambdas.role_listing import RoleListing, build_role_listing
from asya.senders.lambdas.wiring import build_role_list
from asya.senders.roles import ListRequest
from tests.doubles.mesh_world import MeshWorld
from tests.doubles.senders import MESH_SECRET, TOKEN_SECRET
from tests.unit.asya.senders.test_roles import request


class Answers(list[tuple[str, str | None]]):
    """What CloudFormation was told."""

    def add(self, asked: ListRequest, physical_id: str, problem: str | None) -> None:
        self.append((f"{asked.request_id} {physical_id}", problem))


pytestmark = pytest.mark.lists_roles


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def listing(world: MeshWorld, answers: Answers) -> RoleListing:
    return build_role_listing(world.services("x-roles"), answers.add)


@pytest.mark.rule("4.roles")
def test_a_consumer_knows_the_roles_of_a_deployed_stack(
    world: MeshWorld, listing: RoleListing, answers: Answers
) -> None:
    # CloudFormation may call twice.
    for _ in range(2):
        listing.process(request("Create", {"infer": "AROA1"}))
    roles = build_role_list(world.services("x-reports"))
    assert (roles.function_of("AROA1"), roles.function_of("AROA2")) == ("infer", None)
    assert answers == [("r-1 ListedRoles", None)] * 2


@pytest.mark.rule("4.keys.secret")
def test_the_mesh_has_one_secret_and_each_function_one_that_derives_from_it(
    world: MeshWorld, listing: RoleListing
) -> None:
    keys = KeyItems(world.dynamodb, "asya-shop-sink")  # type: ignore[arg-type]
    listing.process(request("Create", {"infer": "AROA1"}))
    secret = keys.secret()
    listing.process(request("Update", {"infer": "AROA1", "prep": "AROA2"}))
    assert keys.secret() == secret
    assert len(secret) == SECRET_BYTES
    assert secret != MESH_SECRET
    assert [keys.secret(name) for name in ("infer", "prep")] == [
        actor_secret(secret, "infer"),
        actor_secret(secret, "prep"),
    ]


@pytest.mark.rule("13.stream-token")
def test_the_secret_of_tokens_stays_and_derives_from_no_other_one(world: MeshWorld, listing: RoleListing) -> None:
    keys = KeyItems(world.dynamodb, "asya-shop-sink")  # type: ignore[arg-type]
    listing.process(request("Create", {"infer": "AROA1"}))
    secret = keys.token_secret()
    listing.process(request("Update", {"infer": "AROA1", "prep": "AROA2"}))
    assert keys.token_secret() == secret
    assert len(secret) == SECRET_BYTES
    others = [keys.secret(), keys.secret("infer"), actor_secret(keys.secret(), "x-tokens")]
    assert secret not in (*others, TOKEN_SECRET)


def test_a_table_that_fails_fails_the_deployment_at_once(
    listing: RoleListing, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(*_: object) -> None:
        raise ClientError({"Error": {"Code": "InternalServerError", "Message": "on demand"}}, "PutItem")

    monkeypatch.setattr(RoleItems, "write", unavailable)
    listing.process(request("Create", {"infer": "AROA1"}))
    ((_, problem),) = answers
    assert problem is not None
    assert "could not be listed" in problem


def test_an_event_of_another_kind_is_an_error_of_the_function(listing: RoleListing, answers: Answers) -> None:
    with pytest.raises(ValueError, match="no request of CloudFormation"):
        listing.process({"Records": []})
    assert answers == []
