"""Permissions of each function and job, as plain IAM statements made from the mesh file. Needs no CDK."""
