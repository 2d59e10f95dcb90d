"""protocol §6: loading a handler; load errors name the handler and the cause."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from asya.runtime.load import LoadError, load
from asya.runtime.signatures import typed

MODULES = {
    "plain_handlers.py": """
made = []
def process(payload): return payload
number = 5
class Model:
    def __init__(self): made.append(self)
    def predict(self, payload): return [payload, len(made)]
    class Inner:
        def run(self, payload): return "inner"
class NeedsArguments:
    def __init__(self, path): pass
    def run(self, payload): pass
class Broken:
    def __init__(self): raise OSError("no model file")
    def run(self, payload): pass
""",
    "wants_missing.py": "import a_package_that_is_not_there\ndef run(payload): pass\n",
    "broken_syntax.py": "def run(payload:\n",
    "fails_at_import.py": "raise OSError('no config')\n",
    "pack/__init__.py": "",
    "pack/deep.py": "def run(payload): return 'deep'\n",
    "pack/bad/__init__.py": "import another_missing_package\n",
    "pack/bad/inner.py": "def run(payload): pass\n",
}


@pytest.fixture(autouse=True)
def code_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, text in MODULES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.rule("6.handler")
def test_a_function_a_method_and_a_nested_module() -> None:
    assert load("plain_handlers.process")(3) == 3
    assert load("plain_handlers.Model.Inner.run")(1) == "inner"
    assert load("pack.deep.run")(1) == "deep"


@pytest.mark.rule("6.handler")
def test_a_class_is_made_once_and_kept() -> None:
    predict = load("plain_handlers.Model.predict")
    assert (predict("a"), predict("b")) == (["a", 1], ["b", 1])


@pytest.mark.rule("6.load-errors")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("process", "must be module.function or module.Class.method"),
        ("", "must be module.function"),
        ("plain_handlers.", "must be module.function"),
        ("plain-handlers.run", "must be module.function"),
        ("nowhere.run", "module 'nowhere' is not in the code folder"),
        ("plain_handlers.missing", "plain_handlers has no 'missing'"),
        ("plain_handlers.Model.missing", "plain_handlers.Model has no 'missing'"),
        ("plain_handlers.number", "is a int, not a function"),
        ("plain_handlers.Model", "is a class; name one of its methods"),
        ("plain_handlers.NeedsArguments.run", "is made without arguments"),
        ("plain_handlers.Broken.run", "Broken() failed: OSError: no model file"),
        ("wants_missing.run", "imports 'a_package_that_is_not_there', which is not installed; name its package in"),
        ("broken_syntax.run", "SyntaxError"),
        ("fails_at_import.run", "importing 'fails_at_import' failed: OSError: no config"),
        ("pack.bad.inner.run", "imports 'another_missing_package', which is not installed"),
    ],
)
def test_load_errors_name_the_handler_and_what_is_wrong(name: str, problem: str) -> None:
    with pytest.raises(LoadError) as caught:
        load(name)
    assert repr(name) in str(caught.value)
    assert problem in str(caught.value)


@pytest.mark.rule("6.handler")
@pytest.mark.parametrize("handler", [lambda: None, lambda a, b: None, lambda *, a: None])
def test_a_handler_takes_one_argument(handler: object) -> None:
    with pytest.raises(LoadError, match=r"'m\.run' must take one argument, the payload; its signature is"):
        typed("m.run", handler)  # type: ignore[arg-type]
