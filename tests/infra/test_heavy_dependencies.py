"""The commands of docs/how-to/package-job-dependencies.md work without Docker."""

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from uv import find_uv_bin

from asya_infra.build.jobs import build_jobs
from asya_infra.build.packages import Target
from tests.paths import PROJECT

PAGE = (PROJECT / "docs" / "how-to" / "package-job-dependencies.md").read_text()


def test_a_pure_package_is_imported_from_the_zip_of_the_jobs(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "requirements.txt").write_text("jmespath\n")
    (jobs / "heavy.py").write_text(
        "import jmespath\n\ndef first(spark, payload): return jmespath.search('a[0]', payload)\n"
    )
    files = build_jobs(tmp_path / "build", Target(interpreter=Path(sys.executable)), jobs)
    packed = shutil.make_archive(str(tmp_path / "jobs-as-uploaded"), "zip", files.jobs)
    code = (
        f"import sys; sys.path = [path for path in sys.path if 'site-packages' not in path]; sys.path.insert(0, {packed!r})\n"
        "import heavy, jmespath\n"
        f"assert jmespath.__file__.startswith({packed!r}), jmespath.__file__\n"
        "assert heavy.first(None, {'a': [7]}) == 7"
    )
    result = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_archive_of_the_page_is_for_the_application(tmp_path: Path) -> None:
    """Run the command of the page with a small package."""
    commands = re.search(r"uv (pip install --target deps .*?)\n +tar (.*?)\n", PAGE, re.DOTALL)
    assert commands is not None
    install = commands.group(1).replace("\\\n", " ").replace('"shapely==2.1.2"', "msgspec").split()
    subprocess.run([find_uv_bin(), *install], cwd=tmp_path, check=True, capture_output=True)
    subprocess.run(["tar", *commands.group(2).split()], cwd=tmp_path, check=True)
    with tarfile.open(tmp_path / "deps-1.tar.gz") as archive:
        names = archive.getnames()
    assert "./msgspec/__init__.py" in names
    assert [name for name in names if name.endswith(".so")]
    assert all("cpython-312-aarch64" in name for name in names if name.endswith(".so"))
