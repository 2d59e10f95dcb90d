"""Runs every command of the README: with the installed wheel, and those for AWS without an account.

The targets of make belong to the repository. The commands that inspect a mesh take the wheel in full size.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from asya_cli.errors import ExitCode
from asya_local.account import read_keys
from asya_local.servers import wait_until
from tests.cloud.readme import commands, write_files
from tests.console.process import running_ui
from tests.installed import InstalledProduct, install
from tests.interrupts import restore_interrupts
from tests.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

FULL_SIZE = bool(os.environ.get("ASYA_FULL_SIZE"))
"""Whether the commands that inspect a mesh are those of the installed package, too. Its first imports take seconds."""

# These targets run setup, the demo or all tests, so the test checks only their last command. See also test_demo.py.
DRY_RUN_TARGETS = {
    "make demo": ".venv/bin/asya demo",
    "make demo KEEP=1": ".venv/bin/asya demo --keep",
    "make test": ".venv/bin/python -m tests.used_needs .build/used-needs",
}


class Shell:
    """A shell in a folder with the files of the README."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = write_files(folder)
        (folder / "events").symlink_to(PROJECT / "events")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }

    def with_product(self, product: InstalledProduct) -> Shell:
        """The shell of somebody who has installed the package, and has no checkout."""
        self.environment |= product.variables
        for name in ("VIRTUAL_ENV", "PYTHONPATH"):
            self.environment.pop(name, None)
        return self

    def run(self, command: str, code: int = 0, **environment: str) -> str:
        """Runs one command, which ends with this exit code, and returns its standard output."""
        process = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert process.returncode == code, f"{command}\n{process.stdout}\n{process.stderr}"
        return process.stdout

    @contextmanager
    def at_work(self, command: str) -> Iterator[None]:
        """Runs `asya dev` meanwhile, as in another terminal; Ctrl-C ends it."""
        described = self.folder / ".asya" / "local.json"
        with subprocess.Popen(
            shlex.split(command),
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            preexec_fn=restore_interrupts,  # noqa: PLW1509 - no thread is running here
        ) as dev:
            try:
                assert wait_until(lambda: described.exists() or dev.poll() is not None, 120)
                assert dev.poll() is None, dev.stdout and dev.stdout.read()
                yield
            finally:
                dev.send_signal(signal.SIGINT)

    def make(self, arguments: str, *more: str) -> str:
        """Runs the project's make; `MESH=` is relative to the reader's folder."""
        words = [
            f"MESH={self.folder / word.removeprefix('MESH=')}" if word.startswith("MESH=") else word
            for word in shlex.split(arguments)
        ]
        return self.run(shlex.join(["make", "--no-print-directory", "-C", str(PROJECT), *more, *words]))


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> InstalledProduct:
    """The wheel, installed into an empty folder by the command of the README."""
    [command] = commands("sh install")
    return install(command, tmp_path_factory.mktemp("installed"))


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    for state in (tmp_path / ".asya").glob("*"):
        if not state.is_symlink():
            shell.run(f"asya local down --state {state}")


def commands_with(word: str) -> list[str]:
    """The local commands of the README that contain a word."""
    return [command for command in commands("sh") if word in command]


def test_every_command_has_a_test() -> None:
    tested = [
        *DRY_RUN_TARGETS,
        *commands_with(".asya/demo"),
        *commands_with(".asya/shop"),
        *commands_with("asya validate"),
    ]
    assert sorted(tested) == sorted(commands("sh"))


def test_make_targets_run_the_expected_commands(shell: Shell) -> None:
    for command, expected in DRY_RUN_TARGETS.items():
        output = shell.make(command.removeprefix("make "), "--dry-run")
        assert expected in [line.rstrip() for line in output.splitlines()]


def test_the_commands_that_inspect_the_demo(
    shell: Shell, cloud: DeployedCloud, product: InstalledProduct, tmp_path: Path
) -> None:
    if FULL_SIZE:
        shell.with_product(product)
    cloud.put_dataset(tmp_path / "data", 1, "")
    (shell.folder / ".asya").mkdir()
    (shell.folder / ".asya" / "demo").symlink_to(cloud.state)
    *inspections, down = commands_with(".asya/demo")
    outputs = [shell.run(command) for command in inspections]
    assert outputs[0].strip() == "again"
    assert "succeeded" in outputs[1]
    assert json.loads((shell.folder / "again.json").read_bytes())["id"] == "again"
    shell.run(f"{down} --help")  # other tests need this cloud; test_the_commands_that_build_a_mesh runs the command


@pytest.mark.skipif(not FULL_SIZE, reason="the demo of all flights (make test-full)")
def test_the_package_runs_the_demo(shell: Shell, product: InstalledProduct) -> None:
    shell.with_product(product).run("asya demo")
    for name in ("report.html", "result.json"):
        assert (shell.folder / ".asya" / "demo" / name).exists()


def test_the_commands_that_begin_a_mesh(shell: Shell, product: InstalledProduct) -> None:
    init, change, dev, call = commands("sh start")
    shell.with_product(product).run(init)
    shell.folder /= change.removeprefix("cd ")
    with shell.at_work(dev):
        answer = json.loads(shell.run(call))
    assert set(answer) == {"orders", "count", "gross"}


def test_the_commands_that_build_a_mesh(shell: Shell, product: InstalledProduct) -> None:
    assert {path.name for path in shell.files} == {"mesh.yaml", "orders.py", "sales.py", "orders.json"}
    if FULL_SIZE:  # the package makes an environment for the cloud, and one for Spark
        shell.with_product(product)
    outputs = {command: shell.run(command) for command in commands_with(".asya/shop")}
    [result] = [json.loads(text) for command, text in outputs.items() if command.startswith("asya result")]
    assert (result["count"], result["sales"]) == (3, {"NO": 20.0, "SE": 30.0})
    [down] = [text for command, text in outputs.items() if command.startswith("asya local down")]
    assert "processes ended" in down


def test_the_installed_package_has_the_page_of_the_console(product: InstalledProduct, tmp_path: Path) -> None:
    """The server starts without a call of the mesh, so any state folder of a local cloud serves."""
    names = ("namespace", "region", "access_key", "secret_key", "data_bucket", "data_prefix", "results_bucket")
    addresses = dict.fromkeys(("gateway_url", "endpoint_url", "emr_endpoint_url"), "http://127.0.0.1:1")
    (tmp_path / "local.json").write_text(json.dumps({**dict.fromkeys((*names, "results_prefix"), "a"), **addresses}))
    environment = {**os.environ, **product.variables}
    with running_ui(product.programs / "asya", tmp_path, environment) as address:
        page = address.partition("#")[0]
        with urllib.request.urlopen(page, timeout=30) as response:
            script = re.search(rb'src="/(assets/[^"]+)"', response.read())
        assert script is not None
        with urllib.request.urlopen(page + script[1].decode(), timeout=30) as response:
            assert response.headers["content-type"].startswith("text/javascript")


def test_the_commands_before_and_at_a_deployment(shell: Shell, product: InstalledProduct) -> None:
    """There is no account here, so the deployment ends at its first call, when the templates and assets are there."""
    shell.with_product(product)
    [validate] = commands_with("asya validate")
    assert "limits are right" in shell.run(validate)
    [deploy] = [command for command in commands("sh aws") if command.startswith("asya deploy")]
    nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}
    shell.run(deploy, ExitCode.UNREACHABLE, **nowhere, AWS_MAX_ATTEMPTS="1")
    assert (shell.folder / "cdk.out" / "Asya-shop-test-state.template.json").exists()


def test_an_installed_package_brings_neither_the_cdk_nor_spark(product: InstalledProduct) -> None:
    """They are large, and not the author's: only their own environments have them."""
    script = (
        "import importlib.util, sys, asya, asya.data, asya_cli.main\n"
        "names = ('aws_cdk', 'constructs', 'pyspark', 'ministack')\n"
        "assert not any(importlib.util.find_spec(name) for name in names)\n"
        "assert not any(name.partition('.')[0] in names for name in sys.modules)"
    )
    subprocess.run([product.python, "-P", "-c", script], env={**os.environ, **product.variables}, check=True)


def test_the_commands_for_aws(shell: Shell, cloud: DeployedCloud, product: InstalledProduct, tmp_path: Path) -> None:
    """The commands find the mesh by its stacks; endpoint and credentials here lead to the local cloud."""
    if FULL_SIZE:
        shell.with_product(product)
    cloud.put_dataset(tmp_path / "data", 1, "")
    deployer = read_keys(cloud.state / "keys.json")["deployer"]
    environment = {"AWS_ENDPOINT_URL": cloud.mesh.connection.endpoint_url or "", **deployer.environment()}
    outputs = [shell.run(command, **environment) for command in commands("sh aws") if "flights" in command]
    assert json.loads(outputs[-1])["status"]["phase"] == "succeeded"
