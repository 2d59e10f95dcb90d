"""Access entries, tags and prefixes: the messages of values that break the rules of AWS."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import heavy_actor_problems, light_actor_problems, mesh_problems

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (
            "access: [{read: x}]",
            "4: actors.a.access[0]: has no resource; an entry needs exactly one of bucket, table, database, secret and "
            "statement",
        ),
        (
            "access: [{bucket: data}]",
            "4: actors.a.access[0]: grants nothing; add read or write patterns, such as read: raw/*",
        ),
        (
            "access: [{bucket: data, read: ../x}]",
            "4: actors.a.access[0].read: should be a relative pattern such as raw/*; got '../x'",
        ),
        (
            "access: [{bucket: data, read: /x}]",
            "4: actors.a.access[0].read: should be a relative pattern such as raw/*; got '/x'",
        ),
        (
            "access: [{secret: s, read: x}]",
            "4: actors.a.access[0].read: should be true, because a secret has no parts; got 'x'",
        ),
        (
            "access: [{bucket: data, read: x, location: y}]",
            "4: actors.a.access[0].location: is for a database; remove it, or name the database",
        ),
        (
            "access: [{database: sales, read: true}]",
            "4: actors.a.access[0]: has no location; name the folder that has the folders of the tables, such as "
            "location: s3://my-lake/sales: their files are read and written there",
        ),
        (
            "access: [{database: sales, location: tables/sales}]",
            "4: actors.a.access[0]: grants nothing; add read or write patterns, such as read: true",
        ),
        (
            "access: [{database: sales, location: tables/sales, read: 'Orders'}]",
            "4: actors.a.access[0].read: should be a pattern of table names in lower case such as orders_*; got 'Orders'",
        ),
        (
            "access: [{database: sales, location: tables/sales, read: hr/people}]",
            "4: actors.a.access[0].read: should be a pattern of table names in lower case such as orders_*; got 'hr/people'",
        ),
    ],
)
def test_access_entries(keys: str, problem: str) -> None:
    assert light_actor_problems(keys) == [problem]


@pytest.mark.parametrize("name", ["*", "sal?s", "Sales", "sales/orders", "a:b"])
def test_a_database_is_one(name: str) -> None:
    assert light_actor_problems(f"access: [{{database: '{name}', location: tables/sales, read: true}}]") == [
        "4: actors.a.access[0].database: should be the name of one database, of lower-case letters, digits, _ and -; "
        f"got {name!r}"
    ]


@pytest.mark.parametrize("location", ["s3://lake", "s3://lake/", "s3://lake/sales/", "tables/sales", "t/day=1/"])
def test_locations(location: str) -> None:
    assert light_actor_problems(f"access: [{{database: sales, location: '{location}', read: true}}]") == []


@pytest.mark.parametrize(
    "location",
    [
        "s3://*/sales",
        "s3://lake/*",
        "s3://lake/../hr",
        "/sales",
        "a//b",
        "s3a://lake/x",
        "s3://lake/a?c",
        "..",
        "s3://",
    ],
)
def test_a_location_is_one_folder(location: str) -> None:
    assert light_actor_problems(f"access: [{{database: sales, location: '{location}', read: true}}]") == [
        "4: actors.a.access[0].location: should be a folder without wildcards, such as s3://my-lake/sales or, below the "
        f"data of the mesh, tables/sales; got {location!r}"
    ]


def test_a_job_with_a_database_has_a_catalog() -> None:
    access = "access: [{database: sales, location: tables/sales, read: true}]"
    assert heavy_actor_problems(access) == [
        "4: actors.a.access[0].database: is in a catalog that the job does not have; set spark: {catalog: glue} of the "
        "mesh or of the actor"
    ]
    assert heavy_actor_problems(access, "catalog: glue") == []
    assert heavy_actor_problems(access, "", "spark: {catalog: glue}") == []


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (
            "sink: {prefixes: {failed: ../x}}",
            "4: sink.prefixes.failed: should be a relative prefix such as failed/; got '../x'",
        ),
        (
            f"tags: {{{', '.join(f't{number}: x' for number in range(48))}}}",
            "4: tags: has 48 tags; 47 at most, because a resource has 50 with those of the mesh",
        ),
        (
            "tags: {'cost%': y}",
            "4: tags.cost%: should have only letters, digits, spaces and _ . : / = + - @; got 'cost%'",
        ),
        (
            "tags: {team: 'a;b'}",
            "4: tags.team: should have only letters, digits, spaces and _ . : / = + - @; got 'a;b'",
        ),
        (
            'tags: {team: "a\\nb"}',
            "4: tags.team: should have only letters, digits, spaces and _ . : / = + - @; got 'a\\nb'",
        ),
        ("tags: {team: x, Team: y}", "4: tags.Team: is the same to IAM as team; remove one of them"),
        ("tags: {'Asya:actor': x}", "4: tags.Asya:actor: the prefix asya: is reserved by the mesh; rename the tag"),
        ("tags: {'aws:x': y}", "4: tags.aws:x: the prefix aws: is reserved by AWS; rename the tag"),
    ],
)
def test_tags_and_prefixes(more: str, problem: str) -> None:
    assert mesh_problems(more) == [problem]


def test_tags_have_letters_of_all_languages_where_emr_serverless_gets_none() -> None:
    tags = "tags: {'Kostenstelle Süd_1.2:/=+-@': 'ÆØÅ 漢字', empty: ''}"
    assert mesh_problems(tags) == []
    assert heavy_actor_problems("", "", tags) == [
        "5: tags.Kostenstelle Süd_1.2:/=+-@: should have only ASCII letters and digits, spaces and _ . : / = + - @, because "
        "EMR Serverless takes no others; got 'Kostenstelle Süd_1.2:/=+-@'"
    ]


_JWT = "gateway: {jwt: {issuer: https://login.example.com/, audience: [shop], tenant: org_id}}"
_ISOLATED = "isolation: tenant"


def tenant_problems(entry: str, spark: str = _ISOLATED, fair: str = "fair_by: owner", more: str = _JWT) -> list[str]:
    problems = heavy_actor_problems(f"{fair}, access: [{entry}]", spark, more)
    return [problem.removeprefix("4: actors.a.access[0]") for problem in problems]


@pytest.mark.rule("10.isolation.access")
@pytest.mark.parametrize("key", ["read", "write"])
@pytest.mark.parametrize("isolation", ["tenant", "envelope"])
@pytest.mark.parametrize("pattern", ["raw/{tenant}/*", "{tenant}/*", "a/b/{tenant}/*.csv", "raw/{tenant}", "{tenant}"])
def test_10_a_pattern_has_the_folder_of_a_tenant(pattern: str, isolation: str, key: str) -> None:
    assert tenant_problems(f"{{bucket: data, {key}: '{pattern}'}}", f"isolation: {isolation}") == []


@pytest.mark.rule("10.isolation.access")
@pytest.mark.parametrize("key", ["read", "write"])
@pytest.mark.parametrize(
    "pattern",
    ["raw/{tenant}*", "raw/x-{tenant}/*", "raw/*/{tenant}/*", "r?w/{tenant}/*", "{tenant}/{tenant}/*", "{tenant}.csv"],
)
def test_10_no_pattern_matches_keys_of_two_tenants(pattern: str, key: str) -> None:
    assert tenant_problems(f"{{bucket: data, {key}: '{pattern}'}}") == [
        f".{key}: should have {{tenant}} once, as a whole folder before any wildcard, such as raw/{{tenant}}/*, so that no other "
        f"tenant's keys match; got {pattern!r}"
    ]


@pytest.mark.rule("10.isolation.access")
@pytest.mark.parametrize(("spark", "fair"), [("", "fair_by: owner"), ("isolation: envelope", "fair_by: org")])
def test_10_only_runs_of_one_proven_tenant_have_its_folders(spark: str, fair: str) -> None:
    message = (
        ".read: has {tenant}, which is for a heavy actor with spark: {isolation: tenant} or envelope, and fair_by: owner: only its "
        "runs have one tenant"
    )
    assert tenant_problems("{bucket: data, read: 'raw/{tenant}/*'}", spark, fair, "") == [message]
    assert light_actor_problems("fair_by: owner, access: [{bucket: data, read: 'raw/{tenant}/*'}]") == [
        f"4: actors.a.access[0]{message}"
    ]


@pytest.mark.rule("10.isolation.access")
@pytest.mark.parametrize("more", ["", "gateway: {jwt: {issuer: https://login.example.com/, audience: [shop]}}"])
def test_10_the_name_of_a_tenant_is_a_claim(more: str) -> None:
    assert tenant_problems("{bucket: data, read: 'raw/{tenant}/*'}", more=more) == [
        ".read: has {tenant}, which is the value of a claim; name the claim as gateway.jwt.tenant"
    ]


@pytest.mark.rule("10.isolation.access")
@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ("{bucket: '{tenant}', read: x}", "bucket"),
        ("{table: rates, read: '{tenant}'}", "read"),
        ("{table: '{tenant}', read: true}", "table"),
        ("{secret: 'keys/{tenant}', read: true}", "secret"),
    ],
)
def test_10_only_keys_of_buckets_are_of_tenants(entry: str, key: str) -> None:
    assert tenant_problems(entry) == [
        f".{key}: cannot contain {{tenant}}, which is a folder in a pattern of a bucket, such as raw/{{tenant}}/*"
    ]
