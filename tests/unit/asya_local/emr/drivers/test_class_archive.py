"""The options that a driver gets with the archive of Spark's classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asya_local.emr.drivers.class_archive import JVM_OPTIONS, ClassArchive, driver_options

if TYPE_CHECKING:
    from pathlib import Path


def test_a_driver_uses_the_archive_of_its_java_and_pyspark_when_it_exists(tmp_path: Path) -> None:
    spark, other, cache = tmp_path / "pyspark", tmp_path / "other", tmp_path / "cache"
    for folder in (spark, other, cache):
        folder.mkdir()
        (folder / "version.py").write_text("4.1.1")
    assert driver_options(cache, "/java", spark) == JVM_OPTIONS
    archive = ClassArchive(cache, "/java", str(spark), JVM_OPTIONS).path
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive} " in driver_options(cache, "/java", spark)
    assert driver_options(cache, "/java", other) == driver_options(cache, "/java/21", spark) == JVM_OPTIONS
