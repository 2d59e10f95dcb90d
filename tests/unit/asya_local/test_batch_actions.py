"""MiniStack's batch actions are added to the single ones of AWS."""

from asya_local.batch_actions import with_batch_actions


def test_each_single_action_gets_its_batch_action() -> None:
    send = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "q"}
    many = {"Effect": "Deny", "Action": ["sqs:DeleteMessage", "sqs:ReceiveMessage", "s3:GetObject"], "Resource": "q"}
    other = {"Effect": "Allow", "NotAction": "sqs:*", "Resource": "*"}

    statements = with_batch_actions({"Version": "2012-10-17", "Statement": [send, many, other]})["Statement"]

    assert statements[0]["Action"] == ["sqs:SendMessage", "sqs:SendMessageBatch"]
    assert statements[1]["Action"] == [*many["Action"], "sqs:DeleteMessageBatch"]
    assert statements[2] == other
    assert with_batch_actions({"Statement": statements})["Statement"] == statements
