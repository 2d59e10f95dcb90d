"""The mesh as CDK stacks: the mesh file, constructs, permissions and builds."""
