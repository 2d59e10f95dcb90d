"""Reads the contracts to compare with: those that are deployed, or those of an earlier mesh file.

The files of a git revision are checked out elsewhere, and the repository stays as it is.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from botocore.exceptions import BotoCoreError, ClientError

from asya.protocol import names
from asya_cli.doctor import session_in
from asya_cli.errors import CommandError
from asya_cli.output.text import echo
from asya_infra.contracts.mesh_contracts import MeshContracts, contracts_of, read_contracts
from asya_infra.contracts.mesh_types import read_mesh_types, tool_schemas
from asya_infra.deployment.deployed_templates import deployed_templates
from asya_infra.mesh_file import LoadedMesh, MeshFileError, load_mesh
from asya_infra.placement import MOST_SHARDS, functions_part
from asya_infra.product.places import BUILD, FILES, JOB_LIBRARY


@dataclass(frozen=True)
class Revision:
    """A revision of the repository of a mesh file.

    Attributes:
        repository: The top folder of the work tree.
        commit: The full name of the commit.
        file: The path of the mesh file in the repository.
    """

    repository: Path
    commit: str
    file: Path

    @classmethod
    def find(cls, mesh: Path, name: str) -> Revision:
        """Find a revision.

        Raises:
            CommandError: The mesh file is in no repository, or the repository has no such revision.
        """
        path = mesh.resolve()
        top = _git(path.parent, "rev-parse", "--show-toplevel")
        if top is None:
            raise CommandError(
                f"{name!r} is no folder with {mesh.name}, and {mesh} is in no git repository",
                "Name a folder with the earlier mesh file.",
            )
        commit = _git(path.parent, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if commit is None:
            raise CommandError(
                f"{name!r} is neither a folder with {mesh.name} nor a revision of {top}",
                "In CI fetch it first, such as by `git fetch origin main`, and compare with origin/main.",
            )
        repository = Path(top).resolve()
        return cls(repository, commit, path.relative_to(repository))

    def check_out(self, folder: Path) -> Path:
        """Write the files of the revision to an empty folder; return the path of the mesh file there.

        Unlike `git archive` this also writes files with the attribute `export-ignore`.

        Raises:
            CommandError: A file cannot be written.
        """
        # An index of its own: that of the work tree may have changes.
        index = {"GIT_INDEX_FILE": str(folder / ".index")}
        prefix = f"--prefix={folder}{os.sep}"
        for arguments in (("read-tree", self.commit), ("checkout-index", "--all", prefix)):
            if _git(self.repository, *arguments, **index) is None:
                raise CommandError(f"git cannot write the files of {self.commit} to {folder}")
        return folder / self.file


def _git(folder: Path, *arguments: str, **variables: str) -> str | None:
    """Run git in a folder; return its answer, or None if it fails."""
    try:
        result = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise CommandError("git is not installed", "Name a folder with the earlier mesh file.") from error
    return result.stdout.strip() if result.returncode == 0 else None


def deployed_contracts(
    loaded: LoadedMesh, region: str | None, profile: str | None = None
) -> tuple[MeshContracts | None, str]:
    """Return the contracts of the deployed mesh with its name; None, after a note, if there are none.

    Args:
        loaded: The mesh file.
        region: The region; by default that of the stage, or of the AWS configuration.
        profile: The profile of the AWS configuration.

    Raises:
        CommandError: The account cannot be read, or is not the one of the mesh file.
    """
    session = session_in(region or loaded.mesh.region, profile)
    stacks = [names.stack_name(loaded.namespace, part) for part in ("gateway", *_functions())]
    label = f"the mesh {loaded.namespace} in {session.region_name}"
    try:
        if loaded.mesh.account:
            account = session.client("sts").get_caller_identity()["Account"]
            if account != loaded.mesh.account:
                raise CommandError(
                    f"{label} belongs to the account {loaded.mesh.account}, but the credentials are of {account}",
                    "Use credentials of that account, or another --stage.",
                )
        templates = deployed_templates(session, stacks)
    except (BotoCoreError, ClientError) as error:
        raise CommandError(
            f"cannot read the templates of {label}: {error}",
            "Check your AWS credentials, or compare with an earlier mesh file: --against REVISION.",
        ) from error
    if not templates:
        echo(f"{label} is not deployed, so nothing can break", err=True)
        return None, label
    contracts = read_contracts(templates.values())
    if contracts is None:
        echo(f"{label} does not record its types yet, so nothing is compared; deploy it once", err=True)
    return contracts, label


def earlier_contracts(mesh: Path, stage: str, against: str) -> MeshContracts | None:
    """Return the contracts of an earlier mesh file; None, after a note, if there was none.

    Args:
        mesh: The mesh file of today.
        stage: Its stage.
        against: A folder with a mesh file of the same name, such a file, or a revision of the git repository.

    Raises:
        CommandError: There is no such folder or revision, or the earlier mesh file is invalid.
    """
    for file in (Path(against), Path(against) / mesh.name):
        if file.is_file():
            return _contracts(file, stage, against, str(file.parent))
    with TemporaryDirectory(prefix="asya-contracts-") as folder:
        revision = Revision.find(mesh, against)
        file = revision.check_out(Path(folder))
        if revision.repository == FILES:
            _use_own_library(Path(folder))
        if not file.is_file():
            echo(f"{against} has no {mesh}, so nothing can break", err=True)
            return None
        return _contracts(file, stage, against, folder)


def _contracts(file: Path, stage: str, against: str, folder: str) -> MeshContracts:
    """Return the contracts of a mesh file; its types need not fit each other."""
    try:
        loaded = load_mesh(file, stage)
    except MeshFileError as error:
        problems = str(error).replace(f"{folder}/", f"{against}:")
        raise CommandError(f"the mesh file of {against} is invalid", problems) from error
    types = read_mesh_types(loaded, BUILD)
    for key, error_text in {**types.light.errors, **types.heavy.errors}.items():
        echo(f"note: {against}: the types of {key!r} are not known, so they are not compared: {error_text}", err=True)
    return contracts_of(loaded.mesh, types.functions, tool_schemas(loaded.mesh, types), loaded.capabilities.registry)


def _use_own_library(folder: Path) -> None:
    """Link the library of today into an earlier tree of this project: a mesh file may have no other one beside its jobs."""
    library = Path("spark_jobs") / "asya_spark"
    if (folder / library).is_dir():
        rmtree(folder / library)
        (folder / library).symlink_to(JOB_LIBRARY)


def _functions() -> list[str]:
    return [functions_part(shard) for shard in range(MOST_SHARDS)]
