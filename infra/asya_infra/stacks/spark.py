"""The stack with the Spark application."""

from aws_cdk import App, Stack, Tags

from asya.protocol import names
from asya_infra.constructs.spark.application import application
from asya_infra.mesh import Mesh


class SparkStack(Stack):
    """The mesh's own application, and the SSM parameter with its id.

    EMR Serverless refuses to change an application that is started, even its tags. In a stack of its own such a change
    fails alone, and no tag of CloudFormation changes it: `asya_infra.deploy` puts the tags of the parameter on it.
    """

    def __init__(self, scope: App, mesh: Mesh) -> None:
        super().__init__(scope, names.stack_name(mesh.namespace, "spark"), env=mesh.environment)
        resource = application(self, mesh)
        for key in mesh.tags:
            # The tags of a stack are those of its resources too.
            Tags.of(self).remove(key, include_resource_types=["aws:cdk:stack", resource.cfn_resource_type])
