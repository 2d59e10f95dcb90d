"""Synthesizes the stacks of a mesh, once for the same inputs. All commands share the assemblies in the cache.

The CDK app runs by itself, with the context that the command `cdk` gives it. An unchanged mesh needs neither Node.js nor the CDK.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from asya.heavy.job_python import JOB_PYTHON
from asya_infra.assembly import Findings
from asya_infra.build.folder import build_once, digest
from asya_infra.build.packages import Target, package_inputs
from asya_infra.mesh_file import LoadedMesh
from asya_infra.node import NODE_VARIABLES
from asya_infra.options import Options, read_options
from asya_infra.product.app import cdk_app, node_path
from asya_infra.product.interpreters import FUNCTION_PYTHON, interpreter_for
from asya_infra.product.meters import to_stderr
from asya_infra.product.places import BUILD, FILES, INFRA, IS_INSTALLED, JOB_LIBRARY, LIBRARY

NAME = "assembly"
"""How the folders of assemblies in the cache begin."""

PRODUCT_SOURCES = (
    *(FILES / name for name in ("app.py", "cdk.json", "package.json", "package-lock.json", "requirements")),
    *(INFRA, LIBRARY, JOB_LIBRARY),
)
"""The sources of the templates, the layer and the job library in this product."""

_KEPT = 10
_YOUNG_SECONDS = 3600
_CONTEXT_OF_CDK: Mapping[str, Any] = {
    "aws:cdk:enable-path-metadata": True,
    "aws:cdk:enable-asset-metadata": True,
    "aws:cdk:disable-version-reporting": True,
    "aws:cdk:bundling-stacks": ["**"],
}
"""What `cdk synth` adds to the context of `cdk.json`, so that both make the same templates."""
_LEFT_OUT = re.compile(r"AWS_|CDK_|JSII_|PYTHONDONTWRITEBYTECODE", re.IGNORECASE)
"""Variables that change what the CDK does; and Python must keep the compiled CDK, because it is large."""


class SynthesisError(Exception):
    """The CDK app refuses a mesh, or AWS would. The message is that of the app."""


@dataclass(frozen=True)
class Synthesized:
    """An assembly in the cache, which nobody changes, and what its synthesis found.

    Attributes:
        folder: the output of the CDK app.
        findings: what it says of the mesh.
    """

    folder: Path
    findings: Findings

    def copy_to(self, folder: Path) -> None:
        """Copy the templates and assets to a folder that the user names."""
        shutil.copytree(self.folder, folder, symlinks=True, dirs_exist_ok=True)


@dataclass(frozen=True)
class Synthesis:
    """One synthesis of a mesh.

    Attributes:
        mesh: the mesh file, which is valid.
        context: the options of the stacks (`asya_infra.options`), but for the path of the mesh file.
        variables: variables for the process of the app, which do not change what it makes.
        root: the folder for builds.
        tell: takes a line of progress, when the CDK is installed.
    """

    mesh: LoadedMesh
    context: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    root: Path = BUILD
    tell: Callable[[str], None] = to_stderr

    def run(self) -> Synthesized:
        """Return the assembly, from the cache if an earlier synthesis had the same inputs.

        Raises:
            OptionError: a value of the context is invalid.
            SynthesisError: the mesh is refused.
            EnvironmentsError: the CDK cannot be installed.
            CacheError: the cache cannot be written.
        """
        inputs = [*self.inputs()]
        try:
            folder = build_once(self.root, NAME, inputs, partial(self._make, digest(inputs)))
        except _NotKeptError as error:
            folder = error.folder
        _remove_old(self.root)
        return Synthesized(folder, Findings.read(folder))

    def inputs(self) -> Iterator[str | bytes | Path]:
        """Yield what the assembly follows from, as parts of a digest.

        The place of the mesh is none of it: no template names a folder of this machine.
        """
        yield json.dumps(sorted(self.context.items()))
        yield from _cdk()
        yield from (*PRODUCT_SOURCES, self.mesh.path)
        options = read_options(self.context.get, FILES)
        for target in self._targets(options):
            yield _key(target)
        for folder in (self.mesh.code_folder, self.mesh.jobs_folder):
            yield from (folder, *package_inputs(folder))

    def _targets(self, options: Options) -> Iterator[Target]:
        """Yield the interpreters that packages are built for, and those that read the types."""
        actors = self.mesh.mesh.actors.values()
        yield options.packages_target
        models = (tool.input_schema for tool in self.mesh.mesh.tools.values())
        if any(actor.handler for actor in actors) or any(isinstance(model, str) for model in models):
            yield Target(interpreter=interpreter_for(FUNCTION_PYTHON).path)
        if any(actor.spark for actor in actors):
            yield options.jobs_target(self.mesh.mesh.spark.application.architecture)
            yield Target(interpreter=interpreter_for(JOB_PYTHON).path)

    def _make(self, key: str, draft: Path) -> None:
        """Run the app.

        Args:
            key: the digest of the inputs before. If they have changed meanwhile, nobody knows which the app has read.
            draft: where it writes.
        """
        configuration = json.loads((FILES / "cdk.json").read_text(encoding="utf-8"))
        context = {
            **configuration["context"],
            **_CONTEXT_OF_CDK,
            **self.context,
            "mesh": str(self.mesh.path.resolve()),
        }
        app = cdk_app(self.tell)
        process = subprocess.run(
            app.command,
            env={
                **{name: value for name, value in os.environ.items() if not _LEFT_OUT.match(name)},
                **app.variables,
                **NODE_VARIABLES,
                "CDK_OUTDIR": str(draft),
                "CDK_CONTEXT_JSON": json.dumps(context),
                # What CloudFormation itself would refuse is found for AWS; for a local cloud it would be half of a synthesis.
                **({"CDK_VALIDATION": "false"} if self.context.get("layer_target") == "local" else {}),
                "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
                "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
                "PATH": node_path(),
                **self.variables,
            },
            cwd=FILES,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if process.returncode:
            raise SynthesisError(process.stderr.strip() or process.stdout.strip())
        if Findings.read(draft).unread or digest(self.inputs()) != key:
            raise _NotKeptError(draft.rename(self.root / f"{NAME}-{uuid.uuid4().hex}"))


class _NotKeptError(Exception):
    """An assembly that the next synthesis does not find."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder


def _cdk() -> Iterator[str]:
    """Yield what tells the CDK and its Python from others. An installed package has those of its own requirements."""
    yield f"{platform.python_version()} {sysconfig.get_platform()}"
    if not IS_INSTALLED:
        site = Path(sysconfig.get_path("purelib"))
        yield f"{sys.prefix} {sorted(path.name for path in site.glob('*.dist-info'))}"


def _key(target: Target) -> str:
    try:
        return target.key()
    except OSError:  # the app says what is wrong with it
        return str(target)


def _remove_old(root: Path) -> None:
    """Remove the assemblies that were used last long ago, but for a few: each has the code of all functions."""
    used = sorted(((path.stat().st_mtime, path) for path in root.glob(f"{NAME}-*")), reverse=True)
    for seconds, path in used[_KEPT:]:
        if seconds < time.time() - _YOUNG_SECONDS:
            shutil.rmtree(path, ignore_errors=True)
