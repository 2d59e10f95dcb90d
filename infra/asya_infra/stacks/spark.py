"""The stack with the Spark application."""

from typing import Any

from aws_cdk import App, Stack

from asya.protocol import names
from asya_infra.constructs.spark.application import application
from asya_infra.mesh import Mesh

APPLICATION_TAGS = "AsyaApplicationTags"
"""The key of the template's metadata with the tags of the application."""


class SparkStack(Stack):
    """The mesh's own application.

    EMR Serverless refuses to change an application that is started, even its tags. In a stack of its own such a change
    fails alone, and no tag of CloudFormation changes it: `asya_infra.deploy` tags it after the deployment.
    """

    def __init__(self, scope: App, mesh: Mesh, tags: dict[str, str]) -> None:
        super().__init__(scope, names.stack_name(mesh.namespace, "spark"))
        application(self, mesh)
        metadata: dict[str, Any] = {APPLICATION_TAGS: tags}
        self.template_options.metadata = metadata
