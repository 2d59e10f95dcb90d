"""The test kit: runs the functions of a mesh in one process, on virtual time and services in memory."""
