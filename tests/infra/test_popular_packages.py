"""The packages with compiled code that people of data use most import from what would be deployed.

Each is alone in its function, because together they pass the limit of Lambda. They are built for this machine and imported by the
Python of functions. The package for AWS is compared with that one file by file.
"""

import hashlib
import os
import platform
import re
import subprocess
from pathlib import Path

import pytest

from asya.protocol.mesh_table import Actor, MeshTable, encode_table
from asya_infra.build.functions import build_handlers
from asya_infra.build.packages import LAMBDA, Target
from asya_infra.product.interpreters import FUNCTION_PYTHON, interpreter_for

TABLE = encode_table(MeshTable(namespace="shop", actors={"score": Actor(kind="handler", handler="mine.handle")}))
LIMIT = 250 * 1024 * 1024
"""Of a function with its layers, in bytes."""

PACKAGES = {
    "numpy==2.2.6": "import numpy.testing, numpy.f2py; assert numpy.linalg.det(numpy.eye(3)) == 1",
    "scipy==1.15.3\nnumpy==2.2.6": "from scipy import stats, optimize, sparse, signal; assert stats.norm.cdf(0) == 0.5",
    "pandas==2.3.3": "import pandas, pandas.testing; assert pandas.DataFrame({'a': [1, 2]}).a.sum() == 3",
    "scikit-learn==1.7.2": (
        "from sklearn.linear_model import LinearRegression\nfrom sklearn.utils import estimator_checks\n"
        "assert round(LinearRegression().fit([[0], [1]], [0, 2]).coef_[0]) == 2"
    ),
    "pyarrow==22.0.0": "import pyarrow.parquet, pyarrow.dataset, pyarrow as pa; assert pa.array([1, 2]).to_pylist() == [1, 2]",
    "polars==1.35.2": "import polars, polars.testing; assert polars.DataFrame({'a': [1, 2]})['a'].sum() == 3",
    "lxml==6.0.2": "from lxml import etree, html; assert etree.fromstring('<a b=\"1\"/>').get('b') == '1'",
    "pillow==12.0.0": "from PIL import Image; assert Image.new('RGB', (2, 3)).resize((4, 6)).size == (4, 6)",
    "cryptography==46.0.3": (
        "from cryptography.fernet import Fernet\nkey = Fernet(Fernet.generate_key())\n"
        "assert key.decrypt(key.encrypt(b'a')) == b'a'"
    ),
    "duckdb==1.4.2": "import duckdb; assert duckdb.sql('select 1 + 1').fetchall() == [(2,)]",
}
# What a compiler or a build writes for its platform: the files with another name, and those with another content.
_PLATFORM_NAMES = (
    (re.compile(r"(x86_64|aarch64)"), "MACHINE"),
    (re.compile(r"-[0-9a-f]{8}(?=[.-])"), "-HASH"),  # of bundled libraries, by their content
)
_PLATFORM_CONTENTS = re.compile(
    r"\.so(\.|$)|\.dist-info/(RECORD|WHEEL|LICENSE\.txt|sboms/.*)$|__config__\.py$|\.(a|pc)$|/arrow/util/config\.h$|"
    r"/build_feature_flags\.py$|^numpy-[^/]+/METADATA$"
)
_X86_LIBRARIES = re.compile(r"\.libs/|lib(quadmath|gfortran)")

pytestmark = pytest.mark.skipif(
    not os.environ.get("ASYA_FULL_SIZE"), reason="downloads 700 MB; `make test-full` runs it"
)


def neutral(name: str) -> str:
    for pattern, replacement in _PLATFORM_NAMES:
        name = pattern.sub(replacement, name)
    return name


def files(folder: Path) -> dict[str, Path]:
    return {neutral(str(path.relative_to(folder))): path for path in folder.rglob("*") if path.is_file()}


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@pytest.fixture(scope="module")
def python() -> Path:
    found = interpreter_for(FUNCTION_PYTHON)
    assert not found.problem, found.unchecked("functions")
    return found.path


@pytest.mark.parametrize("requirements", PACKAGES, ids=lambda text: text.partition("==")[0])
def test_a_package_imports_from_what_would_be_deployed_and_that_for_aws_has_the_same_files(
    tmp_path: Path, python: Path, requirements: str
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "requirements.txt").write_text(f"{requirements}\n")
    here, aws = (
        build_handlers(tmp_path / name, target, code, TABLE)
        for name, target in (("here", Target(interpreter=python)), ("aws", LAMBDA))
    )
    result = subprocess.run(
        [python, "-S", "-P", "-c", f"import sys; sys.path.insert(0, {str(here)!r})\n{PACKAGES[requirements]}"],
        env={"HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr

    ours, theirs = files(here), files(aws)
    print(requirements.partition("==")[0], sum(each.stat().st_size for each in theirs.values()) // 1_000_000, "MB")
    missing = {name for name in ours.keys() ^ theirs.keys() if not _X86_LIBRARIES.search(name)}
    assert not missing
    other = {name for name in ours.keys() & theirs.keys() if digest(ours[name]) != digest(theirs[name])}
    assert {name for name in other if not _PLATFORM_CONTENTS.search(name)} == set()
    assert {machine(path) for name, path in theirs.items() if re.search(r"\.so(\.|$)", name)} <= {183}
    assert {machine(path) for name, path in ours.items() if re.search(r"\.so(\.|$)", name)} <= {
        183 if platform.machine() == "aarch64" else 62
    }
    assert sum(each.stat().st_size for each in theirs.values()) < LIMIT


def machine(library: Path) -> int:
    """The processor of compiled code, by the number of ELF."""
    header = library.read_bytes()[:20]
    assert header[:4] == b"\x7fELF"
    return int.from_bytes(header[18:20], "little")
