"""The settings of Spark for the tables of a catalog: `catalog` and `tables` in the mesh file. Pure.

EMR Serverless has the client of the Glue Data Catalog and the jar of Iceberg:
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/metastore-config.html
https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-iceberg.html
"""

from collections.abc import Mapping

from asya_infra.mesh_file.spark_model import SparkSection

_GLUE = {
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.hive.metastore.client.factory.class": (
        "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory"
    ),
}
# `asya_spark.tables` has the name of the catalog too, for its error.
_ICEBERG = {
    "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.iceberg.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
    "spark.sql.catalog.iceberg.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
}
_JARS, _EXTENSIONS = "spark.jars", "spark.sql.extensions"
_ICEBERG_JAR = "/usr/share/aws/iceberg/lib/iceberg-spark3-runtime.jar"
_ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
# A jar of the user with this in its name replaces that of EMR, such as one of a newer version.
_ICEBERG_NAME = "iceberg-spark"


def spark_conf(spark: SparkSection) -> dict[str, str]:
    """Return the settings of a job: those of its catalog and its tables, under its own `conf`, which wins.

    Jars and extensions of `conf` are added to those of Iceberg.
    """
    conf: dict[str, str] = {}
    if spark.catalog == "glue":
        conf |= _GLUE
    if spark.tables == "iceberg":
        conf |= _ICEBERG
        conf[_EXTENSIONS] = _joined(_ICEBERG_EXTENSIONS, spark.conf, _EXTENSIONS)
        brings_jar = _ICEBERG_NAME in spark.conf.get(_JARS, "")
        conf[_JARS] = spark.conf[_JARS] if brings_jar else _joined(_ICEBERG_JAR, spark.conf, _JARS)
    own = {key: value for key, value in spark.conf.items() if key not in conf or key not in (_EXTENSIONS, _JARS)}
    return conf | own


def _joined(own: str, conf: Mapping[str, str], key: str) -> str:
    others = [part.strip() for part in conf.get(key, "").split(",")]
    return ",".join(dict.fromkeys([own, *filter(None, others)]))
