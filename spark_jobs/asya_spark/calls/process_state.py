"""What all calls of a driver process share: variables, folder, zone and Hadoop's configuration (`protocol §10.process`)."""

import locale
import os
import sys
import time
from typing import Any

from pyspark.sql import SparkSession


class ProcessState:
    """The state of the process before the first call, which each later call finds."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = context = spark.sparkContext
        self._jvm: Any = context._jvm
        java: Any = spark._jsparkSession
        java.sharedState()  # Spark itself changes Hadoop's configuration when it makes this
        self._environment = dict(os.environ)
        self._of_workers = dict(context.environment)
        self._folder = os.getcwd()
        self._path = list(sys.path)
        self._locale = locale.setlocale(locale.LC_ALL)
        self._java_defaults = self._defaults_of_java()
        self._checkpoints = self._checkpoint_folder()
        self._hadoop = self._hadoop_settings()
        self._file_systems = self._open_file_systems()

    def restore(self) -> None:
        """Undoes what calls have changed, and tells the log. No call may be at work."""
        changed = [*self._restore_python(), *self._restore_java(), *self._restore_hadoop()]
        if changed:
            print(
                f"asya_spark: a call has changed {', '.join(changed)} of the process; the next calls have it as before",
                flush=True,
            )

    def _restore_python(self) -> list[str]:
        changed = []
        if dict(os.environ) != self._environment:
            changed.append(_names("variables", {**os.environ}, self._environment))
            os.environ.clear()
            os.environ.update(self._environment)
            time.tzset()  # the variable TZ
        if self._context.environment != self._of_workers:
            changed.append(_names("variables of executors", self._context.environment, self._of_workers))
            self._context.environment.clear()
            self._context.environment.update(self._of_workers)
        if os.getcwd() != self._folder:
            changed.append("the folder")
            os.chdir(self._folder)
        if sys.path != self._path:
            changed.append("sys.path")
            sys.path[:] = self._path
        if locale.setlocale(locale.LC_ALL) != self._locale:
            changed.append("the locale")
            locale.setlocale(locale.LC_ALL, self._locale)
        return changed

    def _restore_java(self) -> list[str]:
        changed = []
        if not self._defaults_of_java().equals(self._java_defaults):
            changed.append("Java's locale and time zone")
            java, (zone, own, *of_categories) = self._jvm.java.util, self._java_defaults
            java.TimeZone.setDefault(zone)
            java.Locale.setDefault(own)  # sets those of all categories too
            for category, default in zip(self._locale_categories(), of_categories, strict=True):
                java.Locale.setDefault(category, default)
        if not self._checkpoint_folder().equals(self._checkpoints):
            changed.append("the folder of checkpoints")
            getattr(self._context._jsc.sc(), "checkpointDir_$eq")(self._checkpoints)
        return changed

    def _defaults_of_java(self) -> Any:
        """The time zone, the locale, and the locale of each category, as a list of the JVM."""
        java = self._jvm.java.util
        defaults = java.ArrayList()
        defaults.add(java.TimeZone.getDefault())
        defaults.add(java.Locale.getDefault())
        for category in self._locale_categories():
            defaults.add(java.Locale.getDefault(category))
        return defaults

    def _locale_categories(self) -> Any:
        return getattr(self._jvm.java.util, "Locale$Category").values()

    def _checkpoint_folder(self) -> Any:
        """An `Option` of Scala."""
        return self._context._jsc.sc().getCheckpointDir()

    def _restore_hadoop(self) -> list[str]:
        now = self._hadoop_settings()
        if now.equals(self._hadoop):
            return []
        before, after = dict(self._hadoop), dict(now)
        conf: Any = self._context._jsc.hadoopConfiguration()
        for name in after.keys() - before.keys():
            conf.unset(name)
        for name in before.keys() - after.keys() | {name for name, value in before.items() if after.get(name) != value}:
            conf.set(name, before[name])
        # A file system keeps the settings that it was opened with, such as keys, for all that use its bucket.
        opened = self._open_file_systems()
        opened.keySet().removeAll(self._file_systems.keySet())
        for system in list(opened.values()):
            system.close()
        return [_names("Hadoop settings", after, before)]

    def _hadoop_settings(self) -> Any:
        """All settings, as a map of the JVM."""
        return self._context._jsc.hadoopConfiguration().getPropsWithPrefix("")

    def _open_file_systems(self) -> Any:
        """Those in Hadoop's cache by their keys, as a map of the JVM. Hadoop tells nobody about them."""
        cache_field = self._jvm.java.lang.Class.forName("org.apache.hadoop.fs.FileSystem").getDeclaredField("CACHE")
        cache_field.setAccessible(True)
        cache = cache_field.get(None)
        map_field = cache.getClass().getDeclaredField("map")
        map_field.setAccessible(True)
        return self._jvm.java.util.HashMap(map_field.get(cache))


def _names(what: str, after: dict[str, str], before: dict[str, str]) -> str:
    """The names of settings that differ; a value may be a secret."""
    names = sorted(name for name in {**after, **before} if after.get(name) != before.get(name))
    return f"{what} ({', '.join(names)})"
