"""The local cloud: runs the CDK stacks of a mesh on one machine, without Docker and without an AWS account.

Entry points: `cloud.up`, `cloud.down` and `health.check_health`.
"""
