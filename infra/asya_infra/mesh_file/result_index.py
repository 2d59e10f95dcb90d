"""The settings of x-index, the heavy actor that compacts the index of results (`protocol §11`)."""

from asya_infra.mesh_file.actor_model import ActorSection
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.sections import read_section

SECTION = read_section(
    ActorSection,
    {
        "spark": {
            "job": "asya_spark.result_days.compact",
            "executors": {"max": 2},
            "conf": {
                "spark.sql.shuffle.partitions": "8",
                "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
            },
        },
        "timeout": "30m",
        "batch": {"size": 10, "window": "0s"},
        "access": [{"bucket": "results", "read": ["index/*"], "write": ["index/days/*"]}],
        "can_send_to": [],
    },
)


def has_index(mesh: MeshFile) -> bool:
    """Return whether x-sink writes the index."""
    return mesh.sink.index and mesh.sink.persist


def compacts_index(mesh: MeshFile) -> bool:
    """Return whether the mesh compacts the index, which needs a Spark application."""
    return has_index(mesh) and any(actor.spark is not None for actor in mesh.actors.values())
