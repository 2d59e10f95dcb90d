"""The stack with the Spark application."""

from aws_cdk import App, Tags

from asya_infra.constructs.spark.application import application
from asya_infra.mesh import Mesh
from asya_infra.stacks.base import MeshStack


class SparkStack(MeshStack):
    """The mesh's own application, and the SSM parameter with its id.

    EMR Serverless refuses to change an application that is started, even its tags. In a stack of its own such a change
    fails alone, and no tag of CloudFormation changes it: `asya deploy` puts the tags of the parameter on it.
    """

    def __init__(self, scope: App, mesh: Mesh) -> None:
        super().__init__(scope, mesh, "spark")
        resource = application(self, mesh)
        for key in mesh.tags:
            Tags.of(resource).remove(key)
