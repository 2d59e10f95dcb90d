"""The AWS account of a local cloud: its keys, clients and users, and the addresses of a mesh in it."""
