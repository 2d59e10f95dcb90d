"""Code that replaces the code of a deployment."""

import io
import zipfile
from pathlib import Path

from asya_local.code_updates import zipped


def test_a_zip_has_all_files_and_equal_files_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("first", "second"):
        folder = tmp_path / name
        (folder / "package.egg-info").mkdir(parents=True)
        (folder / "package.egg-info" / "METADATA").write_text("installed packages have such folders")
        (folder / "run.sh").write_text("#!/bin/sh\n")
        (folder / "run.sh").chmod(0o755)
    content = zipped(tmp_path / "first")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert sorted(archive.namelist()) == ["package.egg-info/METADATA", "run.sh"]
        assert archive.getinfo("run.sh").external_attr >> 16 & 0o777 == 0o755
    assert content == zipped(tmp_path / "second")
    (tmp_path / "second" / "run.sh").write_text("#!/bin/bash\n")
    assert content != zipped(tmp_path / "second")
