"""`vpc` and `storage.kms_key` in the mesh file: forms, limits, and the values of stages."""

from pathlib import Path

import pytest

from asya_infra.mesh_file import LoadedMesh, MeshFileError, load_mesh

KEY = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
SUBNET, GROUP = "subnet-0123456789abcdef0", "sg-0123456789abcdef0"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "functions/handlers").mkdir(parents=True)
    (tmp_path / "functions/handlers/shop.py").write_text("def one(payload): return payload\n")
    return tmp_path


def load(keys: str, stage: str = "") -> LoadedMesh:
    """A mesh with these keys from line 3 on."""
    Path("mesh.yaml").write_text(f"namespace: shop\nactors: {{a: {{handler: shop.one}}}}\n{keys}\n")
    return load_mesh(Path("mesh.yaml"), stage)


def problems(keys: str) -> list[str]:
    with pytest.raises(MeshFileError) as caught:
        load(keys)
    return [str(problem).removeprefix("mesh.yaml:") for problem in caught.value.problems]


@pytest.mark.parametrize(
    "key",
    [
        KEY,
        "arn:aws:kms:eu-central-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab",
        "arn:aws-us-gov:kms:us-gov-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    ],
)
def test_a_key_is_named_by_its_arn(key: str) -> None:
    assert load(f"storage: {{kms_key: '{key}'}}").mesh.storage.kms_key == key


@pytest.mark.parametrize("text", ["alias/shop", "1234abcd-12ab-34cd-56ef-1234567890ab", KEY.replace("kms", "s3")])
def test_other_names_of_a_key_are_refused(text: str) -> None:
    [problem] = problems(f"storage: {{kms_key: '{text}'}}")
    assert problem.startswith("3: storage.kms_key: should be the ARN of a KMS key such as arn:aws:kms:eu-central-1:")
    assert problem.endswith(f"got {text!r}")


def test_an_alias_is_refused_with_the_reason() -> None:
    [problem] = problems("storage: {kms_key: 'arn:aws:kms:eu-central-1:123456789012:alias/shop'}")
    assert problem.endswith("alias/shop'; an alias will not do, because policies name the key itself")


def test_a_key_must_be_in_the_region_of_the_mesh() -> None:
    assert load(f"region: eu-central-1\nstorage: {{kms_key: '{KEY}'}}").mesh.storage.kms_key == KEY
    assert problems(f"region: us-east-1\nstorage:\n  kms_key: {KEY}") == [
        "5: storage.kms_key: is in eu-central-1, but the mesh is deployed to us-east-1; use a key of that region, or a "
        "replica of a multi-Region key there"
    ]


def test_a_network_has_subnets_and_security_groups() -> None:
    mesh = load(f"vpc: {{subnets: [{SUBNET}, subnet-01234567], security_groups: {GROUP}}}").mesh
    assert mesh.vpc is not None
    assert (mesh.vpc.subnets, mesh.vpc.security_groups) == ((SUBNET, "subnet-01234567"), (GROUP,))
    assert mesh.spark.application.vpc is None


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (f"{{subnets: [], security_groups: {GROUP}}}", "subnets: should not be empty"),
        (f"{{security_groups: {GROUP}}}", "subnets: missing"),
        (f"{{subnets: {SUBNET}, security_groups: []}}", "security_groups: should not be empty"),
        (f"{{subnets: {SUBNET}}}", "security_groups: missing"),
        (
            f"{{subnets: vpc-01234567, security_groups: {GROUP}}}",
            "subnets[0]: should be the id of a subnet such as subnet-0123456789abcdef0; got 'vpc-01234567'",
        ),
        (
            f"{{subnets: {SUBNET}, security_groups: [{GROUP}, {SUBNET}]}}",
            f"security_groups[1]: should be the id of a security group such as {GROUP}; got {SUBNET!r}",
        ),
        (
            f"{{subnets: [{SUBNET}, {SUBNET}], security_groups: {GROUP}}}",
            f"subnets[1]: {SUBNET} is listed twice; remove one of them",
        ),
        (
            f"{{subnets: [{', '.join(f'subnet-000000{n:02}' for n in range(17))}], security_groups: {GROUP}}}",
            "subnets: has 17 entries; Lambda and EMR Serverless take 16 at most",
        ),
        (
            f"{{subnets: {SUBNET}, security_groups: [{', '.join(f'sg-0000000{n}' for n in range(6))}]}}",
            "security_groups: has 6 entries; Lambda and EMR Serverless take 5 at most",
        ),
    ],
)
def test_wrong_networks(network: str, message: str) -> None:
    assert problems(f"vpc: {network}") == [f"3: vpc.{message}"]
    assert problems(f"spark: {{application: {{vpc: {network}}}}}") == [f"3: spark.application.vpc.{message}"]


def test_the_network_of_an_existing_application_is_its_own() -> None:
    network = f"{{subnets: {SUBNET}, security_groups: {GROUP}}}"
    assert problems(f"spark: {{application: {{id: 00abc, vpc: {network}}}}}") == [
        "3: spark.application.vpc: conflicts with id: an existing application has its own settings; remove this key"
    ]


def test_stages_merge_networks_and_keys() -> None:
    text = f"""
vpc: {{subnets: {SUBNET}, security_groups: {GROUP}}}
stages:
  dev: {{}}
  prod:
    storage: {{kms_key: '{KEY}'}}
    vpc: {{subnets: [subnet-aaaaaaaa, subnet-bbbbbbbb]}}
"""
    prod, dev = load(text, "prod").mesh, load(text, "dev").mesh
    assert prod.vpc is not None
    assert dev.vpc is not None
    assert (prod.vpc.subnets, prod.vpc.security_groups) == (("subnet-aaaaaaaa", "subnet-bbbbbbbb"), (GROUP,))
    assert prod.storage.kms_key == KEY
    assert (dev.vpc.subnets, dev.storage.kms_key) == ((SUBNET,), None)


def test_a_wrong_value_of_a_stage_has_its_line_there() -> None:
    assert problems("stages:\n  prod:\n    region: us-east-1\n    storage:\n      kms_key: " + KEY)[0].startswith(
        "7: stages.prod.storage.kms_key: is in eu-central-1"
    )
