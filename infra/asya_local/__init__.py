"""The local cloud: the mesh's own CDK stacks on one machine, without Docker and without an AWS account."""
