"""An assembly is made once for the same inputs, and never taken for other ones. The app here is a program that counts its runs."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asya_infra import assemblies
from asya_infra.assemblies import Synthesis, SynthesisError
from asya_infra.build.folder import digest
from asya_infra.mesh_file import load_mesh
from asya_infra.options import OptionError
from asya_infra.product.app import CdkApp

APP = """
import json, os, sys
from pathlib import Path
out, here = Path(os.environ["CDK_OUTDIR"]), Path(__file__).parent
with (here / "runs").open("a") as runs:
    runs.write("run\\n")
(here / "environment.json").write_text(json.dumps(dict(os.environ)))
if (here / "refuse").exists():
    sys.exit((here / "refuse").read_text())
if (here / "during.py").exists():
    exec((here / "during.py").read_text())
(out / "manifest.json").write_text(os.environ["CDK_CONTEXT_JSON"])
unread = (here / "unread").read_text().split() if (here / "unread").exists() else []
(out / "findings.json").write_text(json.dumps({"quotas": ["a quota"], "unread": unread}))
"""
FILES = {
    "mesh.yaml": """
namespace: shop
code: handlers
jobs: jobs
actors:
  check: {handler: orders.check}
  total: {spark: {job: totals.total}}
""",
    "handlers/orders.py": "def check(payload):\n    return payload\n",
    "handlers/requirements.txt": "./wheels/x-1-py3-none-any.whl\n-r more.txt\n",
    "handlers/more.txt": "# none\n",
    "handlers/wheels/x-1-py3-none-any.whl": "1",
    "jobs/totals.py": "def total(spark, payload):\n    return payload\n",
    "jobs/requirements.txt": "# none\n",
}


@dataclass(frozen=True)
class Shop:
    """A mesh, the app, and the cache.

    Attributes:
        mesh: the folder of the mesh.
        app: the folder of the app.
        root: the cache.
    """

    mesh: Path
    app: Path
    root: Path
    context: dict[str, str] = field(default_factory=dict)

    def synthesis(self, **context: str) -> Synthesis:
        return Synthesis(load_mesh(self.mesh / "mesh.yaml"), {**self.context, **context}, root=self.root)

    def key(self, **context: str) -> str:
        return digest(self.synthesis(**context).inputs())

    def runs(self) -> int:
        file = self.app / "runs"
        return len(file.read_text().split()) if file.exists() else 0

    def variables(self) -> dict[str, str]:
        return dict(json.loads((self.app / "environment.json").read_text()))


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    app = write(tmp_path / "app", {"app.py": APP})
    python = Path(sys.executable)
    monkeypatch.setattr(assemblies, "PRODUCT_SOURCES", (app / "app.py",))  # the hash of all of them takes a while
    monkeypatch.setattr(assemblies, "cdk_app", lambda _: CdkApp(python, app / "app.py", {"OF_THE_APP": "1"}))
    return Shop(write(tmp_path / "mesh", FILES), app, tmp_path / "cache")


def test_the_same_mesh_is_synthesized_once_and_needs_no_cdk_after(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    first = shop.synthesis(stage="test").run()
    assert first.findings.quotas == ("a quota",)

    def refuse(_: object) -> CdkApp:
        raise AssertionError("the CDK was looked for")

    monkeypatch.setattr(assemblies, "cdk_app", refuse)
    monkeypatch.setattr(assemblies, "node_path", refuse)
    assert shop.synthesis(stage="test").run() == first
    assert shop.runs() == 1


def test_the_app_gets_the_mesh_and_the_context_but_nothing_that_would_change_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_REGION", "CDK_DEBUG", "JSII_DEBUG", "PYTHONDONTWRITEBYTECODE", "OTHER"):
        monkeypatch.setenv(name, "1")
    made = Synthesis(shop.synthesis().mesh, {"stage": "test"}, {"ASYA_MARK": "2"}, shop.root).run()
    variables = shop.variables()
    assert (variables["OTHER"], variables["ASYA_MARK"], variables["OF_THE_APP"]) == ("1", "2", "1")
    assert not {"AWS_REGION", "CDK_DEBUG", "JSII_DEBUG", "PYTHONDONTWRITEBYTECODE", "CDK_VALIDATION"} & {*variables}
    context = json.loads((made.folder / "manifest.json").read_text())
    assert (context["mesh"], context["stage"]) == (str(shop.mesh / "mesh.yaml"), "test")
    assert context["aws:cdk:enable-asset-metadata"] is True
    assert "@aws-cdk/aws-iam:minimizePolicies" in context


def test_a_local_cloud_does_without_the_checks_of_cloudformation(shop: Shop) -> None:
    shop.synthesis(layer_target="local", local_python=sys.executable).run()
    assert shop.variables()["CDK_VALIDATION"] == "false"


def test_a_copy_is_the_users_own(shop: Shop, tmp_path: Path) -> None:
    made = shop.synthesis().run()
    made.copy_to(tmp_path / "out")
    before = (made.folder / "manifest.json").read_text()
    assert (tmp_path / "out" / "manifest.json").read_text() == before
    (tmp_path / "out" / "manifest.json").write_text("changed")
    assert (made.folder / "manifest.json").read_text() == before


def test_the_place_of_a_mesh_changes_nothing(shop: Shop, tmp_path: Path) -> None:
    other = Shop(tmp_path / "elsewhere", shop.app, shop.root)
    shutil.copytree(shop.mesh, other.mesh)
    assert other.key() == shop.key()


def appended(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with (folder / name).open("a") as file:
            file.write("# changed\n")

    return change


CHANGES: dict[str, Callable[[Path], None]] = {
    "the mesh file": appended("mesh.yaml"),
    "a handler": appended("handlers/orders.py"),
    "a job": appended("jobs/totals.py"),
    "requirements": appended("handlers/requirements.txt"),
    "requirements of jobs": appended("jobs/requirements.txt"),
    "included requirements": appended("handlers/more.txt"),
    "a wheel": appended("handlers/wheels/x-1-py3-none-any.whl"),
    "a further file": lambda folder: write(folder, {"handlers/data.json": ""}) and None,
    "another name": lambda folder: (folder / "handlers/more.txt").rename(folder / "handlers/most.txt") and None,
    "a right to execute": lambda folder: (folder / "handlers/orders.py").chmod(0o755),
    "a setting of uv": lambda folder: write(folder, {"uv.toml": "no-index = true\n"}) and None,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_file_is_another_assembly(shop: Shop, name: str) -> None:
    before = shop.key()
    CHANGES[name](shop.mesh)
    assert shop.key() != before


@pytest.mark.parametrize("key", ["stage", "emr_application_id", "web_adapter_layer", "relist", "anything"])
def test_an_option_is_another_assembly(shop: Shop, key: str) -> None:
    assert len({shop.key(), shop.key(**{key: "1"}), shop.key(**{key: "2"})}) == 3


@pytest.mark.slow
def test_another_interpreter_is_another_assembly(shop: Shop, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("1")
    local = {"layer_target": "local", "local_python": str(python)}
    before = shop.key(**local)
    python.write_text("12")  # an update at the same path
    assert shop.key(**local) != before
    python.unlink()
    assert shop.key(**local) != before


def test_other_packages_or_another_python_are_another_assembly(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {shop.key()}
    monkeypatch.setenv("UV_INDEX_URL", "https://example.com/simple")
    keys.add(shop.key())
    site = shop.app / "site"
    (site / "aws_cdk_lib-1.dist-info").mkdir(parents=True)
    monkeypatch.setattr(assemblies.sysconfig, "get_path", lambda _: str(site))
    keys.add(shop.key())
    (site / "aws_cdk_lib-1.dist-info").rename(site / "aws_cdk_lib-2.dist-info")
    keys.add(shop.key())
    monkeypatch.setattr(assemblies.platform, "python_version", lambda: "3.99.0")
    keys.add(shop.key())
    assert len(keys) == 5


def test_another_version_of_the_product_is_another_assembly(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    product = write(shop.app / "product", {"a.py": "1", "b/c.py": "1"})
    monkeypatch.setattr(assemblies, "PRODUCT_SOURCES", (product / "a.py", product / "b"))
    keys = {shop.key()}
    for name in ("a.py", "b/c.py"):
        write(product, {name: "2"})
        keys.add(shop.key())
    assert len(keys) == 3


NAMES = st.sampled_from(["handlers/a.py", "handlers/b.py", "handlers/c/a.py", "jobs/a.py", "jobs/c/b.txt"])
CONTENTS = st.sampled_from([None, "", "1", "12", "2"])


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.dictionaries(NAMES, CONTENTS, max_size=5), min_size=2, max_size=4))
def test_two_states_have_one_key_if_and_only_if_they_are_the_same(states: list[dict[str, str | None]]) -> None:
    keys: dict[str, str] = {}
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as temporary:
        patch.setattr(assemblies, "PRODUCT_SOURCES", ())
        for number, state in enumerate(states):
            files = {name: content for name, content in state.items() if content is not None}
            shop = Shop(write(Path(temporary, str(number)), {**FILES, **files}), Path(temporary), Path(temporary))
            key = shop.key()
            assert keys.setdefault(json.dumps(sorted(files.items())), key) == key
    assert len({*keys.values()}) == len(keys)


def test_what_is_refused_is_asked_again(shop: Shop) -> None:
    (shop.app / "refuse").write_text("AWS would refuse this mesh")
    for _ in range(2):
        with pytest.raises(SynthesisError, match="AWS would refuse this mesh"):
            shop.synthesis().run()
    (shop.app / "refuse").unlink()
    shop.synthesis().run()
    assert shop.runs() == 3


def test_types_that_were_not_read_are_read_again(shop: Shop) -> None:
    (shop.app / "unread").write_text("check")
    first = shop.synthesis().run()
    assert (first.folder / "manifest.json").exists()
    (shop.app / "unread").unlink()
    shop.synthesis().run()
    shop.synthesis().run()
    assert shop.runs() == 2


def test_a_file_that_changes_meanwhile_leaves_no_assembly_for_what_was_before(shop: Shop) -> None:
    handler = shop.mesh / "handlers" / "orders.py"
    (shop.app / "during.py").write_text(f"Path({str(handler)!r}).write_text('def check(payload): ...\\n')\n")
    before = handler.read_text()
    shop.synthesis().run()
    (shop.app / "during.py").unlink()
    handler.write_text(before)
    shop.synthesis().run()
    assert shop.runs() == 2


def test_a_wrong_option_is_refused(shop: Shop) -> None:
    with pytest.raises(OptionError, match="should be lambda or local"):
        shop.synthesis(layer_target="docker").run()


def test_a_few_assemblies_are_kept_and_none_goes_that_was_just_used(shop: Shop) -> None:
    made = [shop.synthesis(stage=str(number)).run().folder for number in range(12)]
    assert all(folder.exists() for folder in made)
    for number, folder in enumerate(made):
        long_ago = time.time() - 7200 + number
        os.utime(folder, (long_ago, long_ago))
    shop.synthesis(stage="0").run()  # used again
    assert [folder.exists() for folder in made] == [True, False, False, *[True] * 9]
