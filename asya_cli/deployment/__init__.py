"""`asya deploy`, `asya diff` and `asya destroy`: a mesh on AWS, through the CDK.

`command` has the commands, `cdk` runs the CDK's own tool. What is checked before and after it is in `asya_infra.deployment`.
"""
