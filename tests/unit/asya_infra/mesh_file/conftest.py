"""The fixtures of the tests of mesh files."""

from pathlib import Path

import pytest

JOBS = "def crunch(spark, payload): return payload\ndef crunch_all(spark, envelopes): return envelopes\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change into a folder with the handler `shop.one` and the jobs `heavy.crunch` and `heavy.crunch_all`; return its path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "functions/handlers").mkdir(parents=True)
    (tmp_path / "functions/handlers/shop.py").write_text("def one(payload): return payload\n")
    (tmp_path / "spark_jobs").mkdir()
    (tmp_path / "spark_jobs/heavy.py").write_text(JOBS)
    return tmp_path
