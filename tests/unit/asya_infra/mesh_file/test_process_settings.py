"""What the functions of a job change of their process (`protocol §10.parallel`)."""

from pathlib import Path

import pytest

from asya_infra.mesh_file.process_settings import find_process_settings


@pytest.mark.rule("10.parallel")
@pytest.mark.parametrize(
    ("statement", "setting"),
    [
        ("os.environ['A'] = 'b'", "os.environ"),
        ("os.environ |= {'A': 'b'}", "os.environ"),
        ("del os.environ['A']", "os.environ"),
        ("os.environ.update(A='b')", "os.environ"),
        ("os.environ.setdefault('A', 'b')", "os.environ"),
        ("environ['A'] = 'b'", "os.environ"),
        ("system.environ.pop('A')", "os.environ"),
        ("env = os.environ; env['A'] = 'b'", "os.environ"),
        ("os.putenv('A', 'b')", "os.putenv()"),
        ("[os.chdir(each) for each in payload]", "os.chdir()"),
        ("time.tzset()", "time.tzset()"),
        ("locale.setlocale(locale.LC_ALL, 'C')", "locale.setlocale()"),
        ("spark.sparkContext.setCheckpointDir('x')", "setCheckpointDir()"),
        ("spark.sparkContext._jsc.hadoopConfiguration().set('a', 'b')", "hadoopConfiguration().set()"),
        ("conf = spark._jsc.hadoopConfiguration(); conf.setInt('a', 1)", "hadoopConfiguration().setInt()"),
        ("(lambda: spark._jsc.hadoopConfiguration().unset('a'))()", "hadoopConfiguration().unset()"),
        ("spark._jvm.java.util.TimeZone.setDefault(zone)", "TimeZone.setDefault()"),
    ],
)
def test_10_a_job_that_changes_its_process_is_found(tmp_path: Path, statement: str, setting: str) -> None:
    path = tmp_path / "heavy.py"
    path.write_text(
        f"import os, os as system, time, locale\nfrom os import environ\ndef crunch(spark, payload):\n    {statement}\n"
    )
    assert list(find_process_settings(tmp_path, "heavy.crunch")) == [(path, 4, setting)]


@pytest.mark.rule("10.parallel")
@pytest.mark.parametrize(
    "statement",
    [
        "a = os.environ['A']",
        "b = os.environ.get('A')",
        "settings = {}; settings['A'] = 'b'; settings.update(a=1)",
        "spark.conf.set('a', 'b')",
        "fs = hadoop.FileSystem.get(spark._jsc.hadoopConfiguration())",
        "value = spark._jsc.hadoopConfiguration().get('a')",
        "self.chdir('x')",
        "env = {}; env['A'] = 'b'",
    ],
)
def test_10_a_job_that_changes_nothing_of_its_process_is_fine(tmp_path: Path, statement: str) -> None:
    """Statements outside of functions run once."""
    (tmp_path / "heavy.py").write_text(
        "import os\nos.environ['A'] = 'b'\nos.chdir('x')\ndef other():\n    env = os.environ\n    return env['A']\n"
        f"def crunch(spark, payload):\n    {statement}\n"
    )
    assert not list(find_process_settings(tmp_path, "heavy.crunch"))


@pytest.mark.rule("10.parallel")
@pytest.mark.parametrize(
    ("statement", "module"),
    [
        ("import helper", "helper.py"),
        ("from helper import act", "helper.py"),
        ("from helper import *", "helper.py"),
        ("import parts.helper as h", "parts/helper.py"),
        ("from parts import helper", "parts/helper.py"),
        ("def later():\n    from parts.helper import act", "parts/helper.py"),
        ("try:\n    import fast\nexcept ImportError:\n    import helper", "helper.py"),
        ("import between", "helper.py"),
        ("import loop", "helper.py"),
        ("from parts import up", "parts/helper.py"),
    ],
)
def test_10_the_imports_of_a_job_are_searched_too(tmp_path: Path, statement: str, module: str) -> None:
    files = {
        "between.py": "import helper\n",
        "loop.py": "import heavy\nimport helper\n",
        "parts/__init__.py": "",
        "parts/up.py": "from .helper import act\n",
        module: "import os\ndef act():\n    os.environ['A'] = 'b'\n",
        "heavy.py": f"{statement}\ndef crunch(spark, payload):\n    return payload\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert list(find_process_settings(tmp_path, "heavy.crunch")) == [(tmp_path / module, 3, "os.environ")]


@pytest.mark.rule("10.parallel")
def test_10_what_a_job_does_not_import_and_the_library_are_not_searched(tmp_path: Path) -> None:
    setting = "import os\ndef act():\n    os.environ['A'] = 'b'\n"
    (tmp_path / "asya_spark").mkdir()
    for name in ("other.py", "asya_spark/__init__.py", "asya_spark/data.py"):
        (tmp_path / name).write_text(setting)
    (tmp_path / "heavy.py").write_text("from asya_spark import data\ndef crunch(spark, payload):\n    return payload\n")
    assert not list(find_process_settings(tmp_path, "heavy.crunch"))
