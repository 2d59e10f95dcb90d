"""Push notifications for agents: changes of watched tasks go to a queue and from there to clients (`protocol §13`)."""

import json

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from asya.protocol import names
from asya.tasks.aws.items import RECORD, WATCHED
from asya_infra.build.functions import build_table
from asya_infra.constructs.function import MeshFunction, declared
from asya_infra.mesh import Mesh

_BATCH = 100
_ATTEMPTS = 10
# Only changes of records with push configurations invoke the function.
_WATCHED_ONLY = {"dynamodb": {"Keys": {"sk": {"S": [RECORD]}}, "NewImage": {WATCHED: {"BOOL": [True]}}}}


class PushNotifications(Construct):
    """One function queues the changes of tasks, one delivers them. Only a mesh with tools has them."""

    def __init__(self, scope: Construct, mesh: Mesh, layer: lambda_.ILayerVersion, task_changes: str) -> None:
        super().__init__(scope, "PushNotifications")
        code = lambda_.Code.from_asset(str(build_table(mesh.options.build_folder, mesh.table_bytes)))
        feed = MeshFunction(
            self,
            mesh,
            layer,
            declared(mesh, names.PUSH_FEED, code=code),
        )
        lambda_.CfnEventSourceMapping(
            self,
            "Changes",
            function_name=feed.function.function_name,
            event_source_arn=task_changes,
            # Includes the changes before the mapping was active.
            starting_position="TRIM_HORIZON",
            batch_size=_BATCH,
            filter_criteria=lambda_.CfnEventSourceMapping.FilterCriteriaProperty(
                filters=[lambda_.CfnEventSourceMapping.FilterProperty(pattern=json.dumps(_WATCHED_ONLY))]
            ),
            bisect_batch_on_function_error=True,
            maximum_retry_attempts=_ATTEMPTS,
            destination_config=lambda_.CfnEventSourceMapping.DestinationConfigProperty(
                on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(
                    destination=mesh.addresses.dlq_arn(names.PUSH)
                )
            ),
        )
        MeshFunction(self, mesh, layer, declared(mesh, names.PUSH, code=code)).add_declared_event_sources()
