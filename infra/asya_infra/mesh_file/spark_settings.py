"""Knows the settings of Spark, to find misspelled ones: Spark takes any key, and ignores those that it does not know.

`spark_settings.txt` has them as Spark registers them. `python -m tests.spark.known_settings` writes it for another version.
"""

from difflib import get_close_matches
from functools import cache
from pathlib import Path

SETTINGS = Path(__file__).with_suffix(".txt")
# Settings of a class, a catalog or another system, which Spark does not register.
_OPEN = (
    *(
        "spark.emr-serverless.",
        "spark.executorEnv.",
        "spark.hadoop.",
        "spark.kubernetes.",
        "spark.metrics.",
        "spark.mesos.",
    ),
    *("spark.sql.catalog.", "spark.hive.", "spark.dynamicAllocation.", "spark.yarn.", "spark.streaming."),
)
_SIMILAR = 0.9


@cache
def known_settings() -> tuple[str, ...]:
    """Return the settings that Spark registers."""
    return tuple(SETTINGS.read_text().splitlines())


def meant(setting: str) -> str | None:
    """Return the setting that was probably meant; None for one that Spark knows, and for one that resembles none."""
    known = known_settings()
    if setting in known or setting.startswith(_OPEN):
        return None
    folded = {each.lower(): each for each in known}
    if setting.lower() in folded:
        return folded[setting.lower()]
    near = get_close_matches(setting, known, n=1, cutoff=_SIMILAR)
    return near[0] if near else None
