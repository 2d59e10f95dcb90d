"""Who sent a message: SQS vouches for the role, and a list that each deployment writes tells its function.

`senders.lambdas.role_listing` has the entry point of x-roles, which writes the list. Consumers read it by `senders.aws.role_list`.
"""
