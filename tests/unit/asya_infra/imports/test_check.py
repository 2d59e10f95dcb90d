"""The handlers of a mesh are imported as functions do: what fails is named with its place, and does not stop the others."""

import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from asya_infra.imports.check import IMPORT_SECONDS, Imports, check_imports, load_importable
from asya_infra.mesh_file import MeshFileError, load_mesh

pytestmark = pytest.mark.slow

Files = Mapping[str, str]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("imports-build")


def mesh(folder: Path, files: Files, handlers: Mapping[str, str]) -> Path:
    """Write a mesh file with these handlers by actor; a text after the name has further keys."""
    for name, content in files.items():
        path = folder / "handlers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    lines = (f"  {actor}: {{handler: {handler}}}" for actor, handler in handlers.items())
    path = folder / "mesh.yaml"
    path.write_text("\n".join(["namespace: shop", "code: handlers", "actors:", *lines, ""]))
    return path


def imports(path: Path, build: Path, seconds: float = IMPORT_SECONDS) -> Imports:
    return check_imports(load_mesh(path), build, seconds)


def texts(found: Imports) -> dict[str, str]:
    return {str(place[1]): text for place, text in found.findings}


KINDS = """
from functools import partial

def plain(payload): return payload
async def coroutine(payload): return payload
def generator(payload): yield payload
async def stream(payload): yield payload
def typed(name: str, count: int) -> dict: ...
def make(factor):
    def made(payload): ...
    return made
class Shop:
    def order(self, payload): ...
    def __call__(self, payload): ...
made, bound, called, part = make(2), Shop().order, Shop(), partial(lambda a, payload: a, 1)
"""


@pytest.mark.rule("6.code.imports")
def test_handlers_of_each_kind_are_imported(tmp_path: Path, build: Path) -> None:
    names = ["plain", "coroutine", "generator", "stream", "typed", "Shop.order", "made", "bound", "called", "part"]
    ended = "kinds.plain, kind: end, handler_mode: envelope, validate: false"
    handlers = {name.lower().replace(".", "-"): f"kinds.{name}" for name in names} | {"ended": ended}
    assert imports(mesh(tmp_path, {"kinds.py": KINDS}, handlers), build) == Imports()


HANDLER = "def handle(payload): ...\n"
# The code, and what its message contains: a line of the handler's file, and words.
MISTAKES = {
    "package": (
        "import nowhere",
        1,
        ["No module named 'nowhere'", "name the package of 'nowhere' in", "requirements.txt"],
    ),
    "gone": ("\nimport cgi", 2, ["No module named 'cgi'", "Python 3.13, which functions have"]),
    "raises": ("\n\nraise RuntimeError('no\\n region')", 3, ["RuntimeError: no region"]),
    "exits": ("import sys\nsys.exit(3)", 2, ["SystemExit: 3", "remove the call of sys.exit"]),
    "ends": ("import os\nprint('bye', flush=True)\nos._exit(4)", None, ["ended the process (code 4)", "printed: bye"]),
    "crashes": ("import ctypes\nctypes.string_at(0)", 2, ["ended the process (code -11)"]),
    "variable": ("import os\nTABLE = os.environ['TABLE']", 2, ["set TABLE with `env` of the actor"]),
    "hidden": ("open('.rates.json')", 1, [".rates.json is not deployed: its name begins with a dot"]),
    "absent": ("open('absent.json')", 1, ["FileNotFoundError", "put the file into"]),
    "writes": ("open('kept.txt', 'w')", 1, ["Read-only file system: 'kept.txt'", "use tempfile"]),
    "makes": ("import os\nos.mkdir('kept')", 2, ["Read-only file system: 'kept'"]),
    "reads": ("import shared\nassert shared.READY", 2, ["AssertionError"]),
    "many": ("def handle(a, b): ...\n", 1, ["must take one argument"]),
}
FINE = {
    "prints": "print('hello')",
    "temporary": "import os, tempfile\nwith tempfile.TemporaryDirectory() as f: os.makedirs(f'{f}/a/b'); open(f'{f}/c', 'w')",
    "changes": "import shared\nshared.READY = True",
    "forks": "import os\nif os.fork() == 0: pass",
    "waits": "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()",
    "client": "import boto3\nclient = boto3.client('s3')",
    "data": "from pathlib import Path\nRATES = open('rates.json').read() + Path(__file__).with_name('rates.json').read_text()",
    "table": "import json\nassert json.load(open('mesh.json'))['namespace'] == 'shop'",
    "named": "import os\nassert os.environ['AWS_LAMBDA_FUNCTION_NAME'] == 'asya-shop-named'",
    "inside": "import os\nassert os.getcwd() == os.environ['LAMBDA_TASK_ROOT']",
}


@pytest.mark.rule("6.code.imports")
def test_each_mistake_is_named_with_its_place_and_none_hides_another(tmp_path: Path, build: Path) -> None:
    code = {name: text for name, (text, _, _) in MISTAKES.items()} | FINE
    files = {f"{name}.py": f"{text}\n{'' if name == 'many' else HANDLER}" for name, text in code.items()}
    files |= {"shared.py": "READY = False\n", ".rates.json": "{}", "rates.json": "{}"}
    path = mesh(tmp_path, files, {name: f"{name}.handle" for name in code})
    told = texts(imports(path, build))
    assert told.keys() == MISTAKES.keys()
    for name, (_, line, words) in MISTAKES.items():
        place = f"{tmp_path / 'handlers' / name}.py:{'' if line is None else f'{line}:'} "
        assert told[name].startswith(place), told[name]
        assert all(word in told[name] for word in words), told[name]
    with pytest.raises(MeshFileError) as refused:
        load_importable(path, None, build)
    assert [problem.where for problem in refused.value.problems] == [f"actors.{name}.handler" for name in MISTAKES]
    assert [problem.line for problem in refused.value.problems] == list(range(4, 4 + len(MISTAKES)))


def test_an_import_that_hangs_is_named_with_its_line(tmp_path: Path, build: Path) -> None:
    files = {"hangs.py": f"import time\ntime.sleep(600)\n{HANDLER}", "fine.py": HANDLER}
    path = mesh(tmp_path, files, {"hangs": "hangs.handle", "fine": "fine.handle"})
    told = texts(imports(path, build, seconds=5))
    assert told.keys() == {"hangs"}
    assert told["hangs"].startswith(f"{tmp_path}/handlers/hangs.py:2: importing 'hangs.handle' takes longer than 5 s")


@pytest.mark.rule("6.code.imports")
def test_each_actor_has_its_own_variables(tmp_path: Path, build: Path) -> None:
    code = f"import os\nTABLE = os.environ['TABLE']\n{HANDLER}def other(payload): ...\n"
    handlers = {"first": "shop.handle, env: {TABLE: orders}", "second": "shop.handle", "third": "shop.other"}
    told = texts(imports(mesh(tmp_path, {"shop.py": code}, handlers), build))
    assert told.keys() == {"second", "third"}


@pytest.mark.rule("6.code.imports.aws")
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import boto3\nboto3.client('ssm').get_parameter(Name='x')", "it calls AWS"),
        ("import urllib.request\nurllib.request.urlopen('https://shop.s3.amazonaws.com/x')", "it calls AWS"),
        ("import socket\nsocket.create_connection(('169.254.169.254', 80))", "it calls AWS"),
        ("import json, os\nKEY = json.loads(os.environ['KEY'])", "it reads KEY, whose value only AWS has"),
    ],
)
def test_what_only_aws_knows_is_a_note(tmp_path: Path, build: Path, code: str, reason: str) -> None:
    handler = "shop.handle, secrets: {KEY: shop/key}"
    path = mesh(tmp_path, {"shop.py": f"{code}\n{HANDLER}", "fails.py": "import nowhere"}, {"check": handler})
    found = imports(path, build)
    assert not found.findings
    assert (
        f"actors.check.handler: 'shop.handle' is not checked, because its import failed here ({tmp_path}"
        in found.notes[0]
    )
    assert "shop.py:2: " in found.notes[0]
    assert reason in found.notes[0]
    assert load_importable(path, None, build).notes[-1] == found.notes[0]


@pytest.mark.rule("6.code.imports.aws")
def test_imports_have_no_credentials_of_the_author(
    tmp_path: Path, build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "credentials").write_text("[default]\naws_access_key_id = own\naws_secret_access_key = own\n")
    for name, value in {"HOME": str(home), "AWS_PROFILE": "default", "AWS_ACCESS_KEY_ID": "own"}.items():
        monkeypatch.setenv(name, value)
    check = "import boto3, os\nassert boto3.Session().get_credentials().access_key == 'not-known', dict(os.environ)"
    typed = f"{check}\nfrom dataclasses import dataclass\n@dataclass\nclass Order:\n    id: str\ndef handle(order: Order): ...\n"
    loaded = load_importable(mesh(tmp_path, {"shop.py": typed}, {"check": "shop.handle"}), None, build)
    assert loaded.notes == ()


def test_an_answer_is_kept_until_the_code_changes(tmp_path: Path, build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = mesh(tmp_path, {"shop.py": f"import later\n{HANDLER}"}, {"check": "shop.handle"})
    assert texts(imports(path, build)).keys() == {"check"}
    (tmp_path / "handlers" / "later.py").write_text("")
    assert imports(path, build) == Imports()
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "run", lambda *_, **__: pytest.fail("imported again"))
        assert imports(path, build) == Imports()
    (tmp_path / "handlers" / "later.py").unlink()
    assert texts(imports(path, build)).keys() == {"check"}


def wheel(folder: Path, tag: str, files: Files) -> str:
    """Make a wheel of a package `goods`, and return its line of a requirements file."""
    file = folder / f"goods-1.0-{tag}.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr("goods-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: goods\nVersion: 1.0\n")
        archive.writestr("goods-1.0.dist-info/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr("goods-1.0.dist-info/RECORD", "")
    return f"./{file.name}\n"


def test_packages_are_those_that_would_be_deployed(tmp_path: Path, build: Path) -> None:
    files = {
        "goods/__init__.py": "import importlib.metadata\nimportlib.metadata.version('goods')\nimport goods.inner\n"
    }
    required = wheel(tmp_path / "handlers", "py3-none-any", {**files, "goods/inner.py": "import lost\n"})
    path = mesh(
        tmp_path, {"requirements.txt": required, "shop.py": f"import goods\n{HANDLER}"}, {"check": "shop.handle"}
    )
    told = texts(imports(path, build))["check"]
    assert told.startswith(f"{tmp_path}/handlers/shop.py:1: importing 'shop.handle' failed")
    assert "name the package of 'lost'" in told
    wheel(tmp_path / "handlers", "py3-none-any", {**files, "goods/inner.py": ""})
    assert imports(path, build) == Imports()
    # A package that hides one of the library is the first that a function imports.
    wheel(
        tmp_path / "handlers",
        "py3-none-any",
        {**files, "goods/inner.py": "", "msgspec/__init__.py": "raise OSError('old')"},
    )
    assert "importing the library failed: OSError: old" in texts(imports(path, build))["check"]


def test_packages_that_this_machine_cannot_have_are_a_note(tmp_path: Path, build: Path) -> None:
    required = wheel(tmp_path / "handlers", "cp313-cp313-win_arm64", {"goods.py": ""})
    path = mesh(
        tmp_path, {"requirements.txt": required, "shop.py": f"import goods\n{HANDLER}"}, {"check": "shop.handle"}
    )
    found = imports(path, build)
    assert not found.findings
    (note,) = found.notes
    assert "no handler was imported" in note
    assert "requirements.txt: cannot be installed" in note


def test_a_mesh_without_light_actors_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "sums.py").write_text("import nowhere\ndef total(spark, payload): ...\n")
    path = tmp_path / "mesh.yaml"
    path.write_text("namespace: shop\njobs: jobs\nactors:\n  total: {spark: {job: sums.total}}\n")
    assert imports(path, tmp_path / "unused") == Imports()
    assert not (tmp_path / "unused").exists()


@pytest.mark.rule("6.code.imports")
def test_types_and_imports_are_told_at_once(tmp_path: Path, build: Path) -> None:
    shop = """
from dataclasses import dataclass
@dataclass
class Order:
    id: str
@dataclass
class Bill:
    total: int
def check(order: Order) -> Order: ...
def bill(bill: Bill) -> Bill: ...
"""
    files = {"shop.py": shop, "other.py": f"import nowhere\n{HANDLER}"}
    handlers = {"check": "shop.check, can_send_to: [bill]", "bill": "shop.bill", "other": "other.handle"}
    with pytest.raises(MeshFileError) as refused:
        load_importable(mesh(tmp_path, files, handlers), None, build)
    assert [problem.where for problem in refused.value.problems] == [
        "actors.check.can_send_to[0]",
        "actors.other.handler",
    ]
