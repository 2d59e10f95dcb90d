"""What is deployed as files: the layer, the functions' code, the jobs' code. Plain folders, made without Docker."""
