"""Tests the public names, which stay: handlers, jobs, callers, operators and dashboards use them."""

import ast
import inspect
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main

import asya
import asya_spark
import asya_spark.tables
from asya.api_call import Group
from asya.function.aws import telemetry
from asya.function.aws.settings import load_settings
from asya.gateway.call_table import CALLS
from asya.gateway.lambdas.openapi import document
from asya.heavy.run_request import JobDeployment, submit_parameters
from asya.protocol import headers, names
from asya.protocol.mesh_table import Actor, MeshTable, SparkJob, encode_table
from asya_cli.main import app
from asya_infra.options import read_options
from tests.doubles.emf import metrics
from tests.paths import PROJECT
from tests.unit.repository.public_names import COMMANDS, SCHEMAS


def parameters(function: Callable[..., Any]) -> list[tuple[str, str, Any]]:
    """Name, kind and default of each parameter."""
    values = inspect.signature(function).parameters.values()
    return [(each.name, each.kind.name, None if each.default is each.empty else each.default) for each in values]


def positional(*names_and_defaults: str | tuple[str, Any]) -> list[tuple[str, str, Any]]:
    pairs = [(each, None) if isinstance(each, str) else each for each in names_and_defaults]
    return [(name, "POSITIONAL_OR_KEYWORD", default) for name, default in pairs]


def test_handlers_import_branches_data_and_fan_out() -> None:
    assert parameters(asya.branches) == [
        *positional("routes"),
        ("payloads", "KEYWORD_ONLY", None),
        ("into", "KEYWORD_ONLY", "/results"),
        ("at", "KEYWORD_ONLY", "x-fan-in"),
    ]
    assert parameters(asya.fan_out) == [
        *positional("items"),
        ("to", "KEYWORD_ONLY", None),
        ("into", "KEYWORD_ONLY", "/results"),
        ("at", "KEYWORD_ONLY", "x-fan-in"),
    ]
    from asya import data

    assert {
        name: parameters(getattr(data, name)) for name in ("uri", "list", "rows", "size", "open", "read", "write")
    } == {
        "uri": positional("reference"),
        "list": [*positional("prefix"), *keywords({"suffix": "", "after": ""})],
        "rows": [*positional("reference"), *keywords({"after": "", "format": None, "columns": ()})],
        "size": positional("reference"),
        "open": positional("reference"),
        "read": positional("reference"),
        "write": positional("reference", "body", ("content_type", "application/octet-stream")),
    }
    assert [field.name for field in fields(data.DataFile)] == ["reference", "size", "changed_at"]
    assert [field.name for field in fields(data.DataRow) if not field.name.startswith("_")] == [
        "reference",
        "line",
        "cursor",
        "problem",
    ]
    assert isinstance(data.DataRow.value, property)
    assert data.VARIABLE == "ASYA_DATA_URI"


def keywords(defaults: dict[str, Any]) -> list[tuple[str, str, Any]]:
    return [(name, "KEYWORD_ONLY", default) for name, default in defaults.items()]


def test_jobs_import_data_and_context() -> None:
    assert sorted(asya_spark.__all__) == ["Context", "context", "data"]
    assert parameters(asya_spark.context) == []
    assert parameters(asya_spark.data.uri) == [*positional("reference"), ("write", "KEYWORD_ONLY", False)]
    assert parameters(asya_spark.data.list) == [*positional("prefix"), *keywords({"suffix": "", "after": ""})]
    assert parameters(asya_spark.data.pattern) == positional("reference")
    assert parameters(asya_spark.data.object_uri) == positional("uri")
    assert asya_spark.data.VARIABLE == "ASYA_DATA_URI"
    field_names = [
        "id",
        "parent_id",
        "headers",
        "actor",
        "position",
        "attempt",
        "deadline_at",
        "scratch",
        "generation",
        "is_run",
        "run",
    ]
    assert [field.name for field in fields(asya_spark.Context) if not field.name.startswith("_")] == field_names
    assert parameters(asya_spark.Context.fly) == positional("self", "message")
    assert sorted(asya_spark.tables.__all__) == ["TableError", "append_once", "merge_once", "read", "replace_once"]
    frame_and_table = positional("frame", "table")
    options = {"partition_by": (), "evolve": None, "name": ""}
    assert parameters(asya_spark.tables.append_once) == [*frame_and_table, *keywords(options)]
    options = {"where": None, "partition_by": (), "layout": "plain", "evolve": None, "name": ""}
    assert parameters(asya_spark.tables.replace_once) == [*frame_and_table, *keywords(options)]
    assert parameters(asya_spark.tables.merge_once) == [*frame_and_table, *keywords({"on": None, "name": ""})]
    assert parameters(asya_spark.tables.read) == positional("spark", "table")


@pytest.mark.parametrize(
    "statement",
    ["from asya import data, fan_out", "import asya.data", "from asya_spark import Context, context, data"],
)
def test_user_imports_work_on_their_own(statement: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", statement]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_the_distribution_is_asya_mesh_and_its_one_command_asya() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert (project["name"], list(project["scripts"])) == ("asya-mesh", ["asya"])
    (script,) = entry_points(group="console_scripts", name="asya")
    assert script.load() is app


def test_the_command_has_its_subcommands_arguments_and_options() -> None:
    assert dict(_commands(typer.main.get_command(app), "")) == COMMANDS


def _commands(command: Any, path: str) -> Iterator[tuple[str, str]]:
    if hasattr(command, "commands"):
        for name, subcommand in command.commands.items():
            yield from _commands(subcommand, f"{path} {name}".strip())
        return
    words = [
        word
        for each in command.params
        for word in ([each.name.upper()] if each.param_type_name == "argument" else each.opts)
        if word != "--help"
    ]
    yield path, " ".join(words)


def test_a_deployment_reads_these_context_keys(tmp_path: Path) -> None:
    keys: list[str] = []
    read_options(keys.append, tmp_path)
    assert set(keys) == {
        *("mesh", "stage", "emr_application_id", "web_adapter_layer", "relist", "layer_target"),
        *("local_python", "build_folder"),
    }


def test_functions_read_these_environment_variables(tmp_path: Path) -> None:
    table = MeshTable(namespace="shop", actors={"infer": Actor(kind="handler")})
    (tmp_path / "mesh.json").write_bytes(encode_table(table))
    settings = load_settings(
        {
            "LAMBDA_TASK_ROOT": str(tmp_path),
            "AWS_REGION": "eu-central-1",
            "ASYA_ACTOR": "infer",
            "ASYA_BUCKET": "bucket",
            "ASYA_DATA_URI": "s3://bucket/data/",
            "ASYA_RESULTS_URI": "s3://bucket/results/",
            "ASYA_QUEUE_URL_PREFIX": "https://sqs.eu-central-1.amazonaws.com/123456789012/",
            "ASYA_GATEWAY_URL": "https://gateway.example",
            "ASYA_STREAM_URL": "https://streams.example",
            "ASYA_HEARTBEATS": "on",
            "ASYA_SPARK_APPLICATION_ID": "00f1",
            "ASYA_ROLE_PREFIX": "arn:aws:iam::123456789012:role/",
            "ASYA_JOB_ENTRY_POINT": "s3://assets/entry.py",
            "ASYA_JOB_PY_FILES": "s3://assets/a.zip",
            "ASYA_JOB_CODE": "s3://assets/b.tar.gz",
            "ASYA_ACCESS_POLICY_PREFIX": "arn:aws:iam::123456789012:policy/",
        }
    )
    assert (settings.table, settings.actor, settings.region) == (table, "infer", "eu-central-1")
    assert (settings.bucket, settings.data_uri, settings.results_uri) == (
        "bucket",
        "s3://bucket/data/",
        "s3://bucket/results/",
    )
    assert settings.queue_url("infer") == "https://sqs.eu-central-1.amazonaws.com/123456789012/asya-shop-infer"
    assert (settings.gateway_url, settings.stream_url) == ("https://gateway.example", "https://streams.example")
    assert settings.heartbeats
    assert settings.spark is not None
    assert settings.spark.application_id == "00f1"
    assert settings.spark.role_prefix == "arn:aws:iam::123456789012:role/"
    assert settings.spark.entry_point == "s3://assets/entry.py"
    assert (settings.spark.py_files, settings.spark.jobs) == (("s3://assets/a.zip",), "s3://assets/b.tar.gz")
    assert settings.spark.access_policy_prefix == "arn:aws:iam::123456789012:policy/"


@pytest.mark.slow
def test_the_source_reads_no_other_environment_variables() -> None:
    """This list has each `ASYA_` variable that functions and jobs read."""
    folders = [Path(package.__file__ or "").parent for package in (asya, asya_spark)]
    client = folders[0] / "client"  # it is deployed nowhere
    files = [file for folder in folders for file in folder.rglob("*.py") if client not in file.parents]
    texts = [file.read_text() for file in files]
    constants = {
        node.value
        for text in texts
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier()
    }
    assert {name for name in constants if name.startswith("ASYA_")} == {
        *("ASYA_ACTOR", "ASYA_BUCKET", "ASYA_DATA_URI", "ASYA_RESULTS_URI", "ASYA_QUEUE_URL_PREFIX"),
        *("ASYA_GATEWAY_URL", "ASYA_STREAM_URL", "ASYA_HEARTBEATS", "ASYA_STEPS"),
        *(
            "ASYA_SPARK_APPLICATION_ID",
            "ASYA_ROLE_PREFIX",
            "ASYA_JOB_ENTRY_POINT",
            "ASYA_JOB_PY_FILES",
            "ASYA_JOB_CODE",
        ),
        *("ASYA_ACCESS_POLICY_PREFIX", "ASYA_JOB_PACKAGES", "ASYA_MANAGED_JOB_LOGS", "ASYA_JOB_PYTHON"),
        *("ASYA_TRACES_ENDPOINT", "ASYA_TRACES_SHARE", "ASYA_SPARK_ARCHITECTURE"),
    }


def test_drivers_and_executors_get_these_variables() -> None:
    deployment = JobDeployment(
        **{name: name for name in _texts_of(JobDeployment)} | {"py_files": (), "release": "emr-spark-8.1.0"}
    )
    words = submit_parameters(SparkJob(job="jobs.clean", env={"MODE": "fast"}), deployment).split()
    variables = {word.partition("=")[0] for word in words if "Env." in word}
    assert variables == {
        f"{prefix}.{name}"
        for prefix in ("spark.emr-serverless.driverEnv", "spark.executorEnv")
        for name in ("ASYA_DATA_URI", "ASYA_RESULTS_URI", "MODE", "PYSPARK_PYTHON", "PYTHONPATH")
    } | {f"spark.emr-serverless.driverEnv.{name}" for name in ("PYSPARK_DRIVER_PYTHON", "ASYA_JOB_PYTHON")}


def _texts_of(kind: Any) -> list[str]:
    return [name for name in inspect.signature(kind).parameters if name != "py_files"]


def test_15_metrics_share_one_namespace_and_carry_namespace_and_actor(capsys: pytest.CaptureFixture[str]) -> None:
    assert names.METRICS_NAMESPACE == "Asya"
    recorder = telemetry.Telemetry("shop", "infer")
    recorder.count("Received")
    recorder.count("Processed", by=("outcome", "succeeded"), actor="crunch")
    recorder.flush()
    assert [(metric.name, metric.dimensions) for metric in metrics(capsys)] == [
        ("Received", {"namespace": "shop", "actor": "infer"}),
        ("Processed", {"namespace": "shop", "actor": "crunch", "outcome": "succeeded"}),
    ]


def test_1_crew_actors_and_resources_have_these_names() -> None:
    constants = {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)}
    assert constants == {
        "Asya",  # the namespace of metrics
        "pending",  # the kind of a table
        "x-crew",  # in the name of a log group
        *("x-reports", "x-ends", "x-undelivered"),
        *("x-sink", "x-sump", "x-pause", "x-resume", "x-checkpoint", "x-fan-in", "x-index", "x-wait"),
        *("x-dispatch", "x-completion", "x-reconcile", "x-clock", "x-fan-in-sweep", "x-pause-sweep", "x-task-sweep"),
        *("x-dlq", "x-push-feed", "x-push", "x-reports", "x-ends", "x-roles"),
        *("x-gateway-api", "x-gateway-stream", "x-gateway-live", "x-logs", "x-operations"),
        *("x-triggers", "x-hooks"),
    }
    assert names.queue_name("shop", "infer") == "asya-shop-infer"
    assert names.dlq_name("shop", "infer") == "asya-shop-infer-dlq"
    assert names.function_name("shop", "infer") == "asya-shop-infer"
    assert names.role_name("shop", "infer", "eu-west-1") == "asya-shop-infer-eu-west-1"
    assert names.table_name("shop", "tasks") == "asya-shop-tasks"
    assert names.stack_name("shop", "state") == "Asya-shop-state"
    assert names.bucket_name("shop", "123456789012", "eu-west-1") == "asya-shop-123456789012-eu-west-1"
    assert names.access_policy_name("shop", "infer") == "asya-shop-infer-access"
    long = "a" * 63
    assert names.function_name("shop", long) == f"asya-shop-{'a' * 45}-1cc0795a"
    assert names.role_name("shop", long, "eu-west-1") == f"asya-shop-{'a' * 29}-1cc0795a-eu-west-1"
    assert names.resource_name(long, "spark") == f"asya-{'a' * 50}-0444fb87"


def test_3_headers_have_these_names() -> None:
    constants = {value for name, value in vars(headers).items() if name.isupper() and isinstance(value, str)}
    assert constants == {
        *("x-asya-owner", "x-asya-tenant", "x-asya-tool"),
        *("x-asya-first-attempt", "x-asya-gateway-url", "x-asya-mesh-status", "x-asya-root"),
        *("x-asya-route-override", "x-asya-route-resolved", "x-asya-fan-in", "x-asya-pause"),
        *("x-asya-resume-input", "x-asya-resume-at", "x-asya-payload-ref", "x-asya-not-before"),
        *("x-asya-hook", "x-asya-replay-of", "x-asya-set-repeat", "x-asya-generation", "x-asya-key"),
        *("x-asya-circuit-open-since", "x-asya-mesh-version", "x-asya-wait"),
        *("traceparent", "tracestate", "x-asya-"),
    }


def test_13_these_calls_need_no_signature() -> None:
    """docs/reference/gateway.md lists all calls; `make generated` writes the list."""
    assert get_args(Group) == ("tasks", "tools", "mcp", "a2a", "streams")
    assert {call.route for call in CALLS if call.is_public} == {
        *("GET /.well-known/agent-card.json", "GET /api/v1/mesh/{id}/stream", "GET /health"),
        *("GET /callbacks", "POST /callbacks", "POST /hooks/{name}"),
    }
    assert {call.route for call in CALLS if call.rights == "operators"} == {
        *("POST /api/v1/mesh/events", "POST /api/v1/mesh/{id}/events", "POST /api/v1/mesh/redrive"),
        *("POST /envelopes/{id}/progress", "POST /envelopes/{id}/final"),
        *(each.route for each in CALLS if each.path.startswith(("/api/v1/triggers", "/api/v1/backfills"))),
        *(each.route for each in CALLS if each.path.startswith("/api/v1/operations") and "failures" not in each.path),
    }


def test_the_command_is_installed_beside_the_interpreter() -> None:
    script = Path(sys.executable).parent / "asya"
    assert script.is_file()
    assert os.access(script, os.X_OK)


def test_the_openapi_document_names_its_components_as_before() -> None:
    mesh = MeshTable(namespace="shop", actors={})
    assert frozenset(document(mesh, "https://gateway.example")["components"]["schemas"]) == frozenset(SCHEMAS.split())
