"""The settings of each Spark driver on this machine, which close it to the machine's other users.

A driver listens on loopback, which every user of the machine reaches. Without authentication its RPC and its block transfer
answer everybody: whoever asks for a cached block gets its rows.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from asya_local.emr.local_spark import Launch

_SETTINGS = {
    # Spark makes a random secret for each context with a local master. So no command line and no file has it.
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")


def private_settings(folder: Path) -> dict[str, str]:
    """Return the settings of a driver. They come last, so a mesh file does not open what they close.

    Args:
        folder: The folder of the run, which no other user may enter. Spark's blocks and its warehouse are in it.
    """
    return {
        **_SETTINGS,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }


def submit_options(launch: Launch, master: str, java_options: str, folder: Path) -> str:
    """Return the options of spark-submit for a driver.

    Args:
        launch: What the JVM starts with.
        master: Spark's master, such as `local[2]`.
        java_options: Options of the JVM, before those of the launch.
        folder: As `private_settings` has it.
    """
    # A shell draws a progress bar into the log; spark-submit does not.
    settings = {**dict(launch.conf), **private_settings(folder), "spark.ui.showConsoleProgress": "false"}
    if _COLLECTOR.search(launch.java_options):  # a JVM with two of them does not start
        java_options = _COLLECTOR.sub("", java_options)
    options = ["--master", master, "--driver-memory", launch.memory]
    # Spark refuses a heap beside the memory of the driver only in the other spelling, and the JVM takes the last one.
    heap = f"-XX:MaxHeapSize={launch.heap}"
    options += ["--driver-java-options", f"{java_options} {heap} {launch.java_options}".strip()]
    if launch.jars:
        options += ["--jars", ",".join(launch.jars)]
    return shlex.join([*options, *(word for key, value in settings.items() for word in ("--conf", f"{key}={value}"))])
