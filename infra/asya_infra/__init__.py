"""Deploys a mesh: the mesh file, CDK stacks, permissions and builds. `synthesis.add_mesh` is the entry point."""
