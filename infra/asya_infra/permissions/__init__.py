"""What each function and job may do: plain statements, made from the mesh file; nothing here knows about the CDK."""
