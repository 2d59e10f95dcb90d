"""The queue of an actor with its dead-letter queue and alarm (`protocol §4`)."""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from asya.protocol import names
from asya_infra import timings


class ActorQueue(Construct):
    """A queue, its dead-letter queue and an alarm. The visibility timeout follows from the function's timeout."""

    def __init__(self, scope: Construct, namespace: str, actor: str, function_timeout: int, max_receives: int) -> None:
        super().__init__(scope, actor)
        dead_letters = sqs.Queue(
            self,
            "DeadLetters",
            queue_name=names.dlq_name(namespace, actor),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(timings.DLQ_RETENTION_DAYS),
        )
        self.queue = sqs.Queue(
            self,
            "Queue",
            queue_name=names.queue_name(namespace, actor),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(timings.QUEUE_RETENTION_DAYS),
            visibility_timeout=Duration.seconds(timings.visibility_timeout(function_timeout)),
            dead_letter_queue=sqs.DeadLetterQueue(queue=dead_letters, max_receive_count=max_receives),
        )
        cloudwatch.CfnAlarm(
            self,
            "DeadLettersAlarm",
            alarm_name=names.dlq_name(namespace, actor),
            alarm_description=f"Messages that {actor} could not take lie in its dead-letter queue.",
            namespace="AWS/SQS",
            metric_name="ApproximateNumberOfMessagesVisible",
            dimensions=[{"name": "QueueName", "value": names.dlq_name(namespace, actor)}],
            statistic="Maximum",
            period=60,
            evaluation_periods=1,
            threshold=1,
            comparison_operator="GreaterThanOrEqualToThreshold",
            treat_missing_data="notBreaching",
        )
