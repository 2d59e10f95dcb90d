"""The interpreters that run parts of this product: the local cloud, the CDK and Spark.

The emulator pins botocore, the CDK is large, and a job must not see the packages of its author. So each part has an environment of
its own. A checkout has them beside its files (`make setup`). An installed package makes each in the user's cache, when a
command first needs it, from its pinned and hashed packages.
"""

import fcntl
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from asya_infra.build.folder import build_once, digest, link, writing_to
from asya_infra.node import NODE_VARIABLES
from asya_infra.product.meters import Meter, metered, to_stderr
from asya_infra.product.never_used import remove_never_used
from asya_infra.product.places import BUILD, CACHE, FILES, IS_INSTALLED

_DONE = ".installed"
_UNUSED_SECONDS = 60 * 86400
_LAST_LINES = 15
_LEFT_OUT = (
    *("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONHOME", "PYTHONPATH"),
    *("UV_CONSTRAINT", "UV_OVERRIDE", "UV_EXCLUDE_NEWER"),
)
"""Variables of another environment lead packages elsewhere, and uv's own rules may contradict the pinned versions."""
_NO_WHEEL = re.compile(r"^--no-binary (\S+)$", re.MULTILINE)
_PROGRESS = ("Downloading ", "Downloaded ", "Building ", "Built ", "Prepared ", "Installed ")
"""How the lines of uv begin that tell progress; others name its interpreter and each package."""


class Part(StrEnum):
    """A part of the product with an environment of its own. Its value is the name of its file in `requirements/`."""

    CLOUD = "cloud"
    CDK = "cdk"
    SPARK = "spark"
    DEMO = "demo"

    @property
    def label(self) -> str:
        """The part as people call it, with the size of its packages."""
        return f"{_TITLES[self]} ({_MEGABYTES[self]} MB)"


_TITLES = {
    Part.CLOUD: "the local cloud",
    Part.CDK: "the CDK",
    Part.SPARK: "Spark",
    Part.DEMO: "the data of the demo",
}
_MEGABYTES = {Part.CLOUD: 70, Part.CDK: 390, Part.SPARK: 420, Part.DEMO: 15}
_COMMAND_MEGABYTES = 29
_BUILT_TIMES = 3
"""What is built is written thrice before it is installed: as an archive's content, as a wheel, and as that of the wheel."""
_OF_CHECKOUT = {Part.CLOUD: ".venv-cloud"}
"""The environments of a checkout; the parts that are missing here are in that of this process."""


class EnvironmentsError(Exception):
    """An environment is missing, or cannot be made; the message says what to do."""


def python_of(part: Part, tell: Callable[[str], None] = to_stderr) -> Path:
    """Return the interpreter of a part; make its environment once.

    Args:
        part: the part.
        tell: takes a line of progress, when the environment is made.

    Raises:
        EnvironmentsError: A checkout lacks it, or its packages cannot be installed.
    """
    if IS_INSTALLED:
        return _made(part, tell) / "bin" / "python"
    own = _OF_CHECKOUT.get(part)
    if own is None:
        return Path(sys.executable)
    python = FILES / own / "bin" / "python"
    if not python.exists():
        raise EnvironmentsError(f"{part.label} is missing ({python}). Run `make setup` in {FILES}.")
    return python


def packages_of(part: Part, names: tuple[str, ...], tell: Callable[[str], None] = to_stderr) -> list[Path]:
    """Return the folders of packages of a part's environment, such as those of PySpark.

    Raises:
        EnvironmentsError: The environment or a package is missing.
    """
    site = _site_packages(python_of(part, tell))
    folders = [(site / name).resolve() for name in names]
    if missing := [folder.name for folder in folders if not folder.is_dir()]:
        raise EnvironmentsError(f"{part.label} lacks {', '.join(missing)} in {site}. {_repair(part)}")
    return folders


def spark_packages(tell: Callable[[str], None] = to_stderr) -> list[Path]:
    """Return the folders of PySpark and of what it needs, for programs that import jobs.

    Raises:
        EnvironmentsError: Spark's environment is missing, or cannot be made.
    """
    return packages_of(Part.SPARK, ("pyspark", "py4j"), tell)


def spark_path() -> list[Path]:
    """Return what a program that imports jobs needs on its path to find PySpark.

    Raises:
        EnvironmentsError: Spark's environment cannot be made.
    """
    packages = spark_packages()

    def link(folder: Path) -> None:
        for package in packages:
            (folder / package.name).symlink_to(package)

    return [build_once(BUILD, "spark-packages", [str(package) for package in packages], link)]


def node_modules(tell: Callable[[str], None] = to_stderr) -> Path:
    """Return the folder of the CDK's command line tool.

    Raises:
        EnvironmentsError: It is missing, or cannot be installed.
    """
    folder = (_made(Part.CDK, tell) if IS_INSTALLED else FILES) / "node_modules"
    if not (folder / ".bin" / "cdk").exists():
        raise EnvironmentsError(f"The CDK's command is missing ({folder / '.bin' / 'cdk'}). {_repair(Part.CDK)}")
    return folder


@dataclass(frozen=True)
class _Source:
    """What an environment is made from."""

    part: Part
    requirements: Path
    interpreter: Path

    @property
    def options(self) -> Path:
        """The options of each installation: wheels only, but for the packages that it names."""
        return FILES / "requirements" / "options.txt"

    @property
    def builder(self) -> Path | None:
        """The requirements of builds; None if wheels are enough."""
        named = _NO_WHEEL.findall(self.options.read_text(encoding="utf-8"))
        text = self.requirements.read_text(encoding="utf-8")
        is_built = any(re.search(rf"^{re.escape(name)}(==| @ )", text, re.MULTILINE) for name in named)
        return FILES / "requirements" / "build.txt" if is_built else None

    @property
    def written_megabytes(self) -> int:
        """How much an installation writes."""
        return _MEGABYTES[self.part] * (_BUILT_TIMES if self.builder else 1)

    @property
    def built_packages(self) -> Path:
        """The folder of packages that are built once, for all environments with the same pins."""
        pins = [self.requirements, self.options, *([self.builder] if self.builder else [])]
        version = ".".join(platform.python_version_tuple()[:2])
        return CACHE / "packages" / f"{self.part}-{digest([*pins, version, sysconfig.get_platform()])}"

    def folder(self) -> Path:
        files = [self.requirements, self.options, *([self.builder] if self.builder else [])]
        node = [FILES / "package-lock.json"] if self.part is Part.CDK else []
        key = digest([*files, *node, str(self.interpreter), platform.python_version(), sysconfig.get_platform()])
        return CACHE / "environments" / f"{self.part}-{key}"


def _made(part: Part, tell: Callable[[str], None]) -> Path:
    """Return the folder of an environment in the user's cache; make it if it is not there."""
    base = Path(getattr(sys, "_base_executable", sys.executable))
    source = _Source(part, FILES / "requirements" / f"{part}.txt", base)
    folder = source.folder()
    if not (folder / _DONE).is_file():
        with _alone(folder):
            if not (folder / _DONE).is_file():  # another process may have made it in the meantime
                tell(f"installing {part.label}, once, into {folder}")
                _make(source, folder, lambda line: tell(f"  {line}"))
                _remove_unused(folder.parent)
                _remove_unused(CACHE / "packages")
    _note_use(folder)
    return folder


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of an environment. The system releases it when a process ends, however it ends."""
    with writing_to(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock_file = folder.with_suffix(".lock").open("w")
    with lock_file as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(source: _Source, folder: Path, tell: Callable[[str], None]) -> None:
    # What a killed process left may be half an environment.
    shutil.rmtree(folder, ignore_errors=True)
    if source.builder is None:
        _install(source, folder, tell)
    else:
        _make_environment(source, folder, tell)
        shutil.copytree(
            _built(source, tell), _site_packages(folder / "bin" / "python"), copy_function=link, dirs_exist_ok=True
        )
    if source.part is Part.CDK:
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(FILES / name, folder / name)
        tell("Installing the command of the CDK with npm")
        options = ("--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--no-update-notifier")
        command = [str(folder / "bin" / "npm"), "ci", *options]
        with metered(folder / "node_modules", Meter("the command of the CDK", _COMMAND_MEGABYTES, tell)):
            _run(source.part, command, folder, tell=tell)
    (folder / _DONE).touch()
    _note_use(folder)


def _built(source: _Source, tell: Callable[[str], None]) -> Path:
    """Return the folder with the packages of a part that has some without a wheel; build them once."""
    target = source.built_packages
    if not (target / _DONE).is_file():
        with writing_to(target.parent):
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{source.part}-"))
        try:
            _install(source, draft / "environment", tell)
            site = _site_packages(draft / "environment" / "bin" / "python")
            (site / _DONE).touch()
            try:
                site.rename(target)
            except OSError:
                if not target.is_dir():  # otherwise a concurrent build was faster
                    raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    _note_use(target)
    return target


def _make_environment(source: _Source, folder: Path, tell: Callable[[str], None]) -> None:
    # A part's own environment runs this module too, and has no uv: only the environment that makes the others has it.
    from uv import find_uv_bin

    options = ("--quiet", "--no-project", "--python", str(source.interpreter))
    _run(source.part, [find_uv_bin(), "venv", *options, str(folder)], tell=tell)


def _install(source: _Source, folder: Path, tell: Callable[[str], None]) -> None:
    """Make an environment with the packages of a part.

    What the cache of uv lacks comes into another one, which goes. uv would keep a second copy, and a third of what it builds.
    """
    from uv import find_uv_bin

    _make_environment(source, folder, tell)
    uv, python = find_uv_bin(), str(folder / "bin" / "python")
    # The files name every package with its hash, so nothing else is asked of the index: what a build asks for neither.
    command = [uv, "pip", "install", "--color", "never", "--python", python, "--require-hashes", "--no-deps"]
    command += ["--no-build-isolation", "-r", str(source.options), "-r"]
    cache = folder.with_name(f".{folder.name}-cache")
    for requirements in filter(None, (source.builder, source.requirements)):
        try:
            _run(source.part, [*command, str(requirements), "--offline"], tell=tell)
        except EnvironmentsError:
            shutil.rmtree(cache, ignore_errors=True)
            try:
                with metered(cache, Meter(_TITLES[source.part], source.written_megabytes, tell)):
                    _run(source.part, [*command, str(requirements), "--cache-dir", str(cache)], tell=tell)
            finally:
                shutil.rmtree(cache, ignore_errors=True)
    if source.builder is not None:
        # Jobs find only the packages that they have on AWS.
        _run(source.part, [uv, "pip", "uninstall", "--quiet", "--python", python, "setuptools"], tell=tell)
    remove_never_used(_site_packages(folder / "bin" / "python"))


def _run(part: Part, command: list[str], folder: Path | None = None, *, tell: Callable[[str], None]) -> None:
    """Run a program, and tell its progress line by line.

    Raises:
        EnvironmentsError: It failed; the message has its last lines.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    environment |= {"PATH": os.pathsep.join([str(Path(command[0]).parent), os.environ.get("PATH", os.defpath)])}
    environment |= NODE_VARIABLES
    last = deque[str](maxlen=_LAST_LINES)
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            if text := line.strip():
                last.append(text)
                if text.startswith(_PROGRESS):
                    tell(text)
    if process.returncode:
        raise EnvironmentsError(
            f"{part.label} cannot be installed. Is a package index reachable, and is there room on the disk?\n"
            + "\n".join(last)
        )


def _note_use(folder: Path) -> None:
    """Note when an environment was used, by the clock that says how long ago that is: a file system may have its own."""
    now = time.time()
    os.utime(folder / _DONE, (now, now))


def _remove_unused(root: Path) -> None:
    """Remove the environments that no command has used for two months, such as those of earlier versions."""
    for done in root.glob(f"*/{_DONE}"):
        if done.stat().st_mtime < time.time() - _UNUSED_SECONDS:
            shutil.rmtree(done.parent, ignore_errors=True)


def _site_packages(python: Path) -> Path:
    major, minor = platform.python_version_tuple()[:2]
    return python.parent.parent / "lib" / f"python{major}.{minor}" / "site-packages"


def _repair(part: Part) -> str:
    if IS_INSTALLED:
        return f"Remove {CACHE / 'environments'} and run the command again: it installs {part.label} anew."
    return f"Run `make setup` in {FILES}."
