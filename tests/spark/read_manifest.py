"""A process of its own that reads a manifest and all its envelopes, and prints the memory that this took: in MB, as JSON."""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from asya_spark.files import HadoopFiles
from asya_spark.manifest import envelopes, read_manifest


def memory(process: int | str, field: str) -> int:
    """A field of the memory of a process, in MB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(field))


def main(uri: str) -> None:
    """Reads the manifest at a URI."""
    # The heap of the default driver.
    settings = {"spark.driver.memory": "2g", "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    gateway: Any = spark.sparkContext._gateway  # its process is the JVM
    java = gateway.proc.pid
    files, before = HadoopFiles(spark), memory("self", "VmRSS")
    java_before = memory(java, "VmRSS")
    manifest = read_manifest(files, uri)
    texts = sum(len(envelope.payload["text"]) for envelope in envelopes(files, manifest, manifest.members))
    found = {
        "members": len(manifest.members),
        "text": texts,
        "before": before,
        "peak": memory("self", "VmHWM"),
        "java_before": java_before,
        "java_peak": memory(java, "VmHWM"),
    }
    print(json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
