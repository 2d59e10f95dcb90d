"""`secrets` in the mesh file: names of secrets, and the actors that may have them."""

from pathlib import Path

import pytest

from asya_infra.mesh_file import MeshFileError, load_mesh, to_table
from tests.unit.asya_infra.mesh_file.loading import load, problems_of

pytestmark = pytest.mark.usefixtures("folder")


def problems(keys: str) -> list[str]:
    """Return the problems of an actor with these keys in line 3."""
    return problems_of(f"namespace: shop\nactors:\n  a: {{{keys}}}\n")


def test_the_table_has_the_names() -> None:
    assert (
        problems("handler: shop.one, secrets: {KEY: prod/openai.key, TOKEN: 'ssm:/shop/token', PLAIN: 'ssm:plain'}")
        == []
    )
    table = to_table(load_mesh(Path("mesh.yaml")))
    assert table.actors["a"].secrets == {"KEY": "prod/openai.key", "TOKEN": "ssm:/shop/token", "PLAIN": "ssm:plain"}


def test_a_heavy_actor_may_have_secrets() -> None:
    assert problems("spark: {job: heavy.crunch}, secrets: {KEY: key}") == []
    assert to_table(load_mesh(Path("mesh.yaml"))).actors["a"].secrets == {"KEY": "key"}


@pytest.mark.parametrize(
    "section",
    [
        "\nspark: {application: {id: 00abc, max_vcpu: 16}}",
        "\nspark: {application: {vpc: {subnets: [subnet-0a1b2c3d], security_groups: [sg-0a1b2c3d]}}}",
        "\nvpc: {subnets: [subnet-0a1b2c3d], security_groups: [sg-0a1b2c3d]}",
    ],
)
def test_parameters_need_an_application_in_a_vpc(section: str) -> None:
    """EMR Serverless reaches Secrets Manager without a VPC, and Systems Manager only through one."""
    Path("mesh.yaml").write_text(
        "namespace: shop\nactors:\n  a: {spark: {job: heavy.crunch}, secrets: {TOKEN: 'ssm:/shop/token'}}" + section
    )
    assert to_table(load_mesh(Path("mesh.yaml"))).actors["a"].secrets == {"TOKEN": "ssm:/shop/token"}


def test_an_end_actor_may_have_secrets() -> None:
    keys = "kind: end, handler: shop.one, handler_mode: envelope, validate: false, secrets: {KEY: key}"
    assert problems(keys) == []


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (
            "handler: shop.one, secrets: {KEY: 'my secret!'}",
            "3: actors.a.secrets: the text for KEY is not the name of a secret of Secrets Manager; "
            "the mesh file has names, never values",
        ),
        (
            "handler: shop.one, secrets: {KEY: 'ssm:/shop/*'}",
            "3: actors.a.secrets: the text for KEY is not the name of a parameter of Systems Manager; "
            "the mesh file has names, never values",
        ),
        (
            "handler: shop.one, secrets: {AWS_KEY: key}",
            "3: actors.a.secrets: 'AWS_KEY' is reserved: the mesh sets the variables of AWS, Lambda, Powertools and Asya",
        ),
        (
            "handler: shop.one, secrets: {KEY: key}, env: {KEY: x}",
            "3: actors.a.secrets.KEY: is in env too; keep one of them",
        ),
        ("handler: shop.one, secrets: [KEY]", "3: actors.a.secrets: should be a mapping; got a list"),
        (
            "spark: {job: heavy.crunch}, secrets: {KEY: key, TOKEN: 'ssm:/shop/token'}",
            "3: actors.a.secrets.TOKEN: job runs cannot reach Parameter Store, because the application of the mesh is in no "
            "VPC; store the value in Secrets Manager, or put the application in a VPC (spark.application.vpc)",
        ),
        (
            "kind: pause, secrets: {KEY: key}",
            "3: actors.a.secrets: needs a handler or a job, because the values are for its code",
        ),
    ],
)
def test_messages(keys: str, problem: str) -> None:
    assert problems(keys) == [problem]


def test_a_message_does_not_repeat_a_value() -> None:
    assert "hunter2 & co" not in str(problems("handler: shop.one, secrets: {KEY: 'hunter2 & co'}"))


def test_defaults_give_no_secrets() -> None:
    """Each actor names its own secrets."""
    with pytest.raises(MeshFileError, match=r"defaults\.secrets: unknown key"):
        load("namespace: shop\ndefaults: {secrets: {K: k}}\nactors:\n  a: {handler: shop.one}\n")
