from asya_local.batch_actions import with_batch_actions


def test_batches_go_with_the_single_actions() -> None:
    send = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "q"}
    many = {"Effect": "Deny", "Action": ["sqs:DeleteMessage", "sqs:ReceiveMessage", "s3:GetObject"], "Resource": "q"}
    other = {"Effect": "Allow", "NotAction": "sqs:*", "Resource": "*"}

    found = with_batch_actions({"Version": "2012-10-17", "Statement": [send, many, other]})["Statement"]

    assert found[0]["Action"] == ["sqs:SendMessage", "sqs:SendMessageBatch"]
    assert found[1]["Action"] == [*many["Action"], "sqs:DeleteMessageBatch"]
    assert found[2] == other
    assert with_batch_actions({"Statement": found})["Statement"] == found
