"""The StartJobRun request: Spark parameters and session policy (`protocol §10`)."""

import hashlib
import json
import shlex
from dataclasses import replace as replace_fields
from fnmatch import fnmatchcase

import pytest
from msgspec.structs import replace

from asya.heavy.run_request import POLICY_LIMIT, JobDeployment, RunRequestError, run_request, session_policy
from asya.protocol.job_runs import Manifest, Member
from asya.protocol.mesh_table import SparkJob, WorkerSize
from tests.doubles.job_runs import MANIFEST

ASSETS = "s3://cdk-hnb659fds-assets-123456789012-ap-northeast-1"
DEPLOYMENT = JobDeployment(
    bucket="asya-" + "n" * 24 + "-123456789012-ap-northeast-1",
    data_uri="s3://the-data-bucket/some/prefix/data/",
    results_uri="s3://the-results-bucket/",
    entry_point=f"{ASSETS}/{'e' * 64}.py",
    py_files=(f"{ASSETS}/{'a' * 64}.zip",),
    jobs=f"{ASSETS}/{'b' * 64}.tar.gz",
    region="cn-north-1",
    role_prefix="arn:aws-cn:iam::123456789012:role/",
    access_policy_prefix="arn:aws-cn:iam::123456789012:policy/",
    release="emr-spark-8.1.0",
)
JOB = SparkJob(
    job="jobs.work",
    driver=WorkerSize(cores=2, memory_mb=4096, disk_gb=30),
    min_executors=0,
    max_executors=2,
    conf={"spark.sql.shuffle.partitions": "8", "spark.dynamicAllocation.maxExecutors": "7"},
    env={"GREETING": 'it\'s "me" $HOME'},
    archives=(f"{ASSETS}/packages.tar.gz#packages",),
)


def conf_of(parameters: str) -> dict[str, str]:
    words = shlex.split(parameters)
    pairs = [words[deployment + 1] for deployment, word in enumerate(words) if word == "--conf"]
    return dict(pair.split("=", 1) for pair in pairs)


def allowed(policy: str, action: str, resource: str) -> bool:
    return any(
        fnmatchcase(resource, pattern)
        for statement in json.loads(policy)["Statement"]
        if action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
        for pattern in (statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]])
    )


def test_the_request_of_a_run() -> None:
    request = run_request(MANIFEST, JOB, DEPLOYMENT)

    assert (request.name, request.client_token, request.time_limit) == (MANIFEST.run_id, "t" * 64, 6)
    manifest = f"s3://{DEPLOYMENT.bucket}/runs/heavy/0000000042/manifest.json"
    assert request.arguments == ("--manifest", manifest, "--data-uri", DEPLOYMENT.data_uri)
    assert request.role_arn == "arn:aws-cn:iam::123456789012:role/asya-ns-x-job-heavy-cn-north-1"
    assert request.policy_arns == ("arn:aws-cn:iam::123456789012:policy/asya-ns-heavy-access",)
    assert request == run_request(MANIFEST, JOB, DEPLOYMENT)


@pytest.mark.rule("10.secrets")
def test_10_the_arguments_name_the_secrets_and_their_region() -> None:
    request = run_request(MANIFEST, JOB, DEPLOYMENT, {"SHOP_KEY": "shop/key=1", "TOKEN": "ssm:/shop/token"})
    plain = run_request(MANIFEST, JOB, DEPLOYMENT)
    names = ("--secret", "SHOP_KEY=shop/key=1", "--secret", "TOKEN=ssm:/shop/token", "--region", "cn-north-1")
    assert request.arguments == (*plain.arguments, *names)
    assert replace_fields(request, arguments=plain.arguments) == plain


def test_sparks_parameters_come_from_the_mesh_file_whose_conf_wins() -> None:
    text = run_request(MANIFEST, JOB, DEPLOYMENT).submit_parameters
    conf = conf_of(text)

    assert conf["spark.driver.cores"] == "2"
    assert conf["spark.driver.memory"] == "4096m"
    assert conf["spark.executor.memory"] == "2048m"
    assert conf["spark.emr-serverless.driver.disk"] == "30g"
    assert "spark.emr-serverless.executor.disk" not in conf
    assert conf["spark.dynamicAllocation.minExecutors"] == "0"
    assert conf["spark.dynamicAllocation.initialExecutors"] == conf["spark.executor.instances"] == "1"
    assert conf["spark.dynamicAllocation.maxExecutors"] == "7"
    assert conf["spark.emr-serverless.driverEnv.GREETING"] == conf["spark.executorEnv.GREETING"] == 'it\'s "me" $HOME'
    assert conf["spark.emr-serverless.driverEnv.ASYA_DATA_URI"] == DEPLOYMENT.data_uri
    assert conf["spark.emr-serverless.driverEnv.ASYA_RESULTS_URI"] == DEPLOYMENT.results_uri
    words = shlex.split(text)
    assert words[words.index("--py-files") + 1] == ",".join(DEPLOYMENT.py_files)
    assert words[words.index("--archives") + 1] == f"{DEPLOYMENT.jobs}#asya-jobs,{JOB.archives[0]}"


def test_a_run_begins_with_the_executors_of_its_conf() -> None:
    job = replace(JOB, conf={"spark.dynamicAllocation.initialExecutors": "0"})
    conf = conf_of(run_request(MANIFEST, job, DEPLOYMENT).submit_parameters)
    assert conf["spark.dynamicAllocation.initialExecutors"] == conf["spark.executor.instances"] == "0"


PACKAGES = f"{ASSETS}/{'c' * 64}.tar.gz"
PACKED = replace_fields(DEPLOYMENT, packages=PACKAGES)
DRIVER_PATH, EXECUTOR_PATH = "spark.emr-serverless.driverEnv.PYTHONPATH", "spark.executorEnv.PYTHONPATH"


@pytest.mark.rule("10.packages")
def test_10_a_run_gets_the_packages_of_the_mesh() -> None:
    """Beside its own archives, in front of its own PYTHONPATH, and readable in its session."""
    job = replace(JOB, env={"PYTHONPATH": "./models"})
    request = run_request(MANIFEST, job, PACKED)
    words = shlex.split(request.submit_parameters)
    assert words[words.index("--archives") + 1] == f"{PACKED.jobs}#asya-jobs,{PACKAGES}#asya-packages,{JOB.archives[0]}"
    conf = conf_of(request.submit_parameters)
    assert conf[DRIVER_PATH] == conf[EXECUTOR_PATH] == "./asya-jobs:./asya-packages:./models"
    assert allowed(request.session_policy, "s3:GetObject", PACKAGES.replace("s3://", "arn:aws-cn:s3:::"))


@pytest.mark.rule("10.packages")
def test_10_conf_adds_to_the_path_of_packages() -> None:
    job = replace(JOB, conf={EXECUTOR_PATH: "./models"})
    conf = conf_of(run_request(MANIFEST, job, PACKED).submit_parameters)
    assert (conf[DRIVER_PATH], conf[EXECUTOR_PATH]) == (
        "./asya-jobs:./asya-packages",
        "./asya-jobs:./asya-packages:./models",
    )


@pytest.mark.rule("10.packages")
def test_10_only_a_driver_with_secrets_gets_their_client() -> None:
    conf = conf_of(run_request(MANIFEST, JOB, PACKED, {"SHOP_KEY": "shop/key"}).submit_parameters)
    assert conf[DRIVER_PATH] == "./asya-jobs:./asya-packages:./asya-packages/.aws-client"
    assert conf[EXECUTOR_PATH] == "./asya-jobs:./asya-packages"


@pytest.mark.rule("10.packages")
def test_10_a_run_without_packages_gets_none() -> None:
    """Its driver finds boto3 in its image, if it has any."""
    text = run_request(MANIFEST, JOB, DEPLOYMENT, {"SHOP_KEY": "shop/key"}).submit_parameters
    assert "asya-packages" not in text
    assert conf_of(text)[DRIVER_PATH] == conf_of(text)[EXECUTOR_PATH] == "./asya-jobs"


@pytest.mark.rule("10.code")
def test_10_a_run_gets_the_jobs_of_the_mesh_as_files() -> None:
    """Spark unpacks them beside the driver and each executor, and the session may read their archive."""
    request = run_request(MANIFEST, JOB, DEPLOYMENT)
    words = shlex.split(request.submit_parameters)
    assert words[words.index("--py-files") + 1] == DEPLOYMENT.py_files[0]
    assert words[words.index("--archives") + 1].split(",")[0] == f"{DEPLOYMENT.jobs}#asya-jobs"
    assert allowed(request.session_policy, "s3:GetObject", str(DEPLOYMENT.jobs).replace("s3://", "arn:aws-cn:s3:::"))


@pytest.mark.rule("10.packages", "10.code")
def test_10_a_job_of_the_library_gets_neither_jobs_nor_packages() -> None:
    request = run_request(MANIFEST, replace(JOB, job="asya_spark.result_days.compact"), PACKED)
    assert not {"asya-packages", "asya-jobs"} & set(request.submit_parameters.replace("#", ",").split(","))
    assert DRIVER_PATH not in conf_of(request.submit_parameters)
    assert not allowed(request.session_policy, "s3:GetObject", str(PACKED.jobs).replace("s3://", "arn:aws-cn:s3:::"))


PINNED = {
    "spark.emr-serverless.driverEnv.PYSPARK_PYTHON": "/usr/bin/python3.12",
    "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON": "/usr/bin/python3.12",
    "spark.executorEnv.PYSPARK_PYTHON": "/usr/bin/python3.12",
    "spark.pyspark.python": "/usr/bin/python3.12",
    "spark.pyspark.driver.python": "/usr/bin/python3.12",
    "spark.emr-serverless.driverEnv.ASYA_JOB_PYTHON": "3.12",
}


@pytest.mark.rule("10.python")
def test_a_run_uses_the_python_that_its_code_was_built_for() -> None:
    conf = conf_of(run_request(MANIFEST, JOB, DEPLOYMENT).submit_parameters)
    assert PINNED.items() <= conf.items()


@pytest.mark.rule("10.python")
@pytest.mark.parametrize("release", ["emr-spark-8.1.0", "emr-spark-8.2.0-latest", "emr-spark-8.10.1"])
def test_releases_with_that_python(release: str) -> None:
    conf = conf_of(run_request(MANIFEST, JOB, replace_fields(DEPLOYMENT, release=release)).submit_parameters)
    assert PINNED.items() <= conf.items()


@pytest.mark.rule("10.python")
@pytest.mark.parametrize("release", [None, "emr-7.11.0", "emr-6.15.0", "emr-spark-8.0-preview", "emr-spark-9.0.0"])
def test_a_release_that_may_lack_that_python_keeps_its_own(release: str | None) -> None:
    """None is the release of an existing application."""
    text = run_request(MANIFEST, JOB, replace_fields(DEPLOYMENT, release=release)).submit_parameters
    assert "PYTHON" not in text.replace("PYTHONPATH", "")
    assert "pyspark.python" not in text
    assert "python3.12" not in text


@pytest.mark.rule("10.python")
@pytest.mark.parametrize(
    ("conf", "env"),
    [
        ({"spark.pyspark.python": "./env/bin/python"}, {}),
        ({"spark.executorEnv.PYSPARK_PYTHON": "./env/bin/python"}, {}),
        ({}, {"PYSPARK_PYTHON": "./env/bin/python"}),
    ],
)
def test_an_actor_may_select_another_python(conf: dict[str, str], env: dict[str, str]) -> None:
    made = conf_of(run_request(MANIFEST, replace(JOB, conf=conf, env=env), DEPLOYMENT).submit_parameters)
    assert "/usr/bin/python3.12" not in made.values()
    assert "spark.emr-serverless.driverEnv.ASYA_JOB_PYTHON" not in made
    assert conf.items() <= made.items()


def test_a_session_reaches_its_own_run_only() -> None:
    policy = session_policy(MANIFEST, JOB, DEPLOYMENT)
    own, data = f"arn:aws-cn:s3:::{DEPLOYMENT.bucket}", "arn:aws-cn:s3:::the-data-bucket/some/prefix/data"

    assert len(policy) <= POLICY_LIMIT
    assert allowed(policy, "s3:GetObject", f"{own}/runs/heavy/0000000042/manifest.json")
    assert allowed(policy, "s3:PutObject", f"{own}/runs/heavy/0000000042/attempts/x/commit.json")
    assert allowed(policy, "s3:PutObject", f"{data}/scratch/heavy/0000000042/x/0/part")
    assert allowed(policy, "s3:GetObject", DEPLOYMENT.entry_point.replace("s3://", "arn:aws-cn:s3:::"))
    assert allowed(policy, "s3:GetObject", f"{ASSETS}/packages.tar.gz".replace("s3://", "arn:aws-cn:s3:::"))
    for resource in (
        f"{own}/pending/heavy/abc.json",
        f"{own}/runs/heavy/0000000041/manifest.json",
        f"{own}/runs/other/0000000042/manifest.json",
        f"{own}/results/succeeded/a.json",
        f"{data}/raw/flights.csv",
        f"{data}/scratch/heavy/0000000043/x",
    ):
        assert not allowed(policy, "s3:GetObject", resource)
    assert not allowed(policy, "s3:PutObject", f"{own}/pending/heavy/abc.json")


def stored(count: int, *, linger: float = 0.0) -> Manifest:
    """A manifest with so many stored envelopes."""
    keys = [f"pending/heavy/{hashlib.sha256(str(number).encode()).hexdigest()}.json" for number in range(count)]
    members = tuple(Member(id=key[-20:], position=0, attempt=1, admitted_at="", envelope_key=key) for key in keys)
    return replace(MANIFEST, members=(*MANIFEST.members, *members), linger=linger)


@pytest.mark.rule("10.job-reads")
@pytest.mark.parametrize("count", [0, 1, 2, 4, 5, 20, 21, 300])
def test_10_a_session_reads_the_stored_envelopes_of_its_run(count: int) -> None:
    """Of more than a policy can name, those of the actor."""
    manifest = stored(count)
    policy, own = session_policy(manifest, JOB, DEPLOYMENT), f"arn:aws-cn:s3:::{DEPLOYMENT.bucket}"
    assert len(policy) <= POLICY_LIMIT
    for member in manifest.members[len(MANIFEST.members) :]:
        assert allowed(policy, "s3:GetObject", f"{own}/{member.envelope_key}")
    others = [f"{own}/pending/heavy/{hashlib.sha256(bytes([7, number])).hexdigest()}.json" for number in range(200)]
    reached = [allowed(policy, "s3:GetObject", other) for other in others]
    assert set(reached) == {count > 4}, "four fit beside the longest names"
    assert not allowed(policy, "s3:GetObject", f"{own}/pending/other/abc.json")


@pytest.mark.rule("10.job-reads")
def test_10_a_run_that_gets_envelopes_later_reads_those_of_its_actor() -> None:
    policy = session_policy(stored(1, linger=60.0), JOB, DEPLOYMENT)
    assert allowed(policy, "s3:GetObject", f"arn:aws-cn:s3:::{DEPLOYMENT.bucket}/pending/heavy/abc.json")


@pytest.mark.rule("10.job-writes")
@pytest.mark.parametrize("action", ["s3:PutObject", "s3:DeleteObject", "s3:GetObject"])
@pytest.mark.parametrize("run", ["heavy/0000000041", "heavy/0000000043", "heavy2/0000000042"])
def test_10_a_run_that_lingers_says_nothing_of_another_one(run: str, action: str) -> None:
    """Neither that it is idle, nor what its next batch is."""
    policy = session_policy(stored(1, linger=60.0), JOB, DEPLOYMENT)
    runs = f"arn:aws-cn:s3:::{DEPLOYMENT.bucket}/runs"
    for name in ("presence.json", "000001/manifest.json", "000001/attempts/a/commit.json"):
        assert allowed(policy, action, f"{runs}/heavy/0000000042/batches/{name}")
        assert not allowed(policy, action, f"{runs}/{run}/batches/{name}")


@pytest.mark.rule("10.job-writes")
@pytest.mark.parametrize("action", ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"])
def test_10_a_session_writes_its_attempts_and_logs_alone(action: str) -> None:
    """The manifest says which envelopes the results belong to, so a job that wrote it could forge those of others."""
    policy = session_policy(MANIFEST, JOB, DEPLOYMENT)
    run = f"arn:aws-cn:s3:::{DEPLOYMENT.bucket}/runs/heavy/0000000042"
    for name in ("attempts/x/commit.json", "attempts/x/", "attempts/", "attempts_$folder$", "logs/applications/a.gz"):
        assert allowed(policy, action, f"{run}/{name}"), name
    for name in ("manifest.json", "manifest.json/attempts/x", "x/attempts/y", "", "x.json"):
        assert not allowed(policy, action, f"{run}/{name}"), name
    for other in ("0000000043", "0000000041"):
        assert not allowed(policy, action, f"{run.removesuffix('0000000042')}{other}/attempts/x/commit.json")


@pytest.mark.parametrize(
    ("folder", "action"),
    [
        ("{own}/runs/heavy/0000000042", "s3:GetObject"),
        *(("{data}/scratch/heavy/0000000042", f"s3:{verb}Object") for verb in ("Get", "Put", "Delete")),
    ],
)
def test_a_session_reaches_its_folders_by_their_names(folder: str, action: str) -> None:
    """S3A asks for the folder itself, with and without the slash, before it lists it."""
    policy = session_policy(MANIFEST, JOB, DEPLOYMENT)
    resource = folder.format(
        own=f"arn:aws-cn:s3:::{DEPLOYMENT.bucket}", data="arn:aws-cn:s3:::the-data-bucket/some/prefix/data"
    )
    listed = [
        prefix
        for statement in json.loads(policy)["Statement"]
        for prefix in statement.get("Condition", {}).get("StringLike", {}).get("s3:prefix", [])
    ]

    for name in (resource, f"{resource}/"):
        assert allowed(policy, action, name)
        assert any(fnmatchcase(name.split(":::")[1].partition("/")[2], pattern) for pattern in listed)
    assert not allowed(policy, action, resource.removesuffix("2") + "3")
    assert not allowed(policy, action, resource.removesuffix("/0000000042"))


def test_the_policy_and_the_arn_of_the_access_policy_share_a_limit() -> None:
    longest = replace(MANIFEST, actor="a" * 63)
    refused = 0
    for length in range(1, 1025):
        job = replace(JOB, py_files=(f"s3://own-libraries/{'x' * length}",))
        try:
            request = run_request(longest, job, DEPLOYMENT)
        except RunRequestError:
            refused += 1
        else:
            assert len(request.session_policy) + sum(map(len, request.policy_arns)) <= POLICY_LIMIT
    assert 0 < refused < 1024


def test_many_files_are_summed_up_and_what_cannot_be_said_is_refused() -> None:
    longest = replace(MANIFEST, actor="a" * 63)
    many = replace(JOB, py_files=tuple(f"{ASSETS}/libraries/{number:064d}.zip" for number in range(30)))
    policy = session_policy(longest, many, DEPLOYMENT)
    assert len(policy) <= POLICY_LIMIT
    assert allowed(policy, "s3:GetObject", many.py_files[0].replace("s3://", "arn:aws-cn:s3:::"))

    scattered = replace(JOB, py_files=tuple(f"s3://{'b' * 50}{number:03d}/x.zip" for number in range(30)))
    with pytest.raises(RunRequestError, match="session policy"):
        session_policy(longest, scattered, DEPLOYMENT)


def test_a_deployment_decides_whether_emr_serverless_keeps_logs() -> None:
    assert run_request(MANIFEST, JOB, DEPLOYMENT).managed_logs
    assert not run_request(MANIFEST, JOB, replace_fields(DEPLOYMENT, managed_logs=False)).managed_logs
