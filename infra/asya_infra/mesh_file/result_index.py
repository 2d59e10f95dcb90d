"""The heavy actor that compacts the index of results (`protocol §11`): part of the mesh, though no mesh file sets it up."""

from asya_infra.mesh_file.actor_model import ActorSection
from asya_infra.mesh_file.mesh_model import MeshFile

SECTION = ActorSection.model_validate(
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
        "access": [{"bucket": "results", "read": ["index/*"], "write": ["index/days/*"]}],
        "can_send_to": [],
    }
)


def has_index(mesh: MeshFile) -> bool:
    """Whether x-sink writes the index."""
    return mesh.sink.index and mesh.sink.persist


def compacts_index(mesh: MeshFile) -> bool:
    """Whether the mesh compacts it: only where there is something to run jobs on."""
    return has_index(mesh) and any(actor.spark is not None for actor in mesh.actors.values())
