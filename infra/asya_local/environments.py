"""Makes the Python environments of user code: the standard library and a few named packages, and nothing of this project.

Functions and jobs thus find the same packages as on AWS: those of the runtime, and those of their `requirements.txt`. An
environment has links only, so it takes milliseconds and no package index.
"""

from __future__ import annotations

from pathlib import Path

from asya_infra.build.folder import build_once
from asya_infra.product.interpreters import FUNCTION_PYTHON, interpreter_for

# What the Python runtime of Lambda brings with it. The layer and the user's packages come first on the path.
_RUNTIME_PACKAGES = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six.py", "urllib3")


def linked_environment(root: Path, name: str, interpreter: Path, version: str, packages: list[Path]) -> Path:
    """Return the interpreter of a virtual environment with these packages; make it once.

    Args:
        root: The folder for builds.
        name: The name of the environment.
        interpreter: The interpreter outside any virtual environment.
        version: Its version, such as `3.11.7`.
        packages: The folders and modules of the packages.
    """

    def build(folder: Path) -> None:
        (folder / "bin").mkdir()
        (folder / "bin" / "python").symlink_to(interpreter)
        settings = {"home": interpreter.parent, "include-system-site-packages": "false", "version": version}
        (folder / "pyvenv.cfg").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        site = folder / "lib" / f"python{'.'.join(version.split('.')[:2])}" / "site-packages"
        site.mkdir(parents=True)
        for package in packages:
            (site / package.name).symlink_to(package)

    key = [name, version, str(interpreter), *map(str, packages)]
    return build_once(root, name, key, build) / "bin" / "python"


def function_python(root: Path, cloud_python: Path) -> Path:
    """Return the interpreter of functions, with the version and the packages that Lambda's runtime has.

    Args:
        root: The folder for builds.
        cloud_python: The interpreter of MiniStack's virtual environment, which has these packages.
    """
    environment = cloud_python.parent.parent
    lines = (environment / "pyvenv.cfg").read_text().splitlines()
    settings = {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)}
    version = settings.get("version_info") or settings["version"]
    site = environment / "lib" / f"python{'.'.join(version.split('.')[:2])}" / "site-packages"
    packages = [site / name for name in _RUNTIME_PACKAGES]
    python = interpreter_for(FUNCTION_PYTHON)
    return linked_environment(root, "function-environment", python.path, python.version, packages)
