"""A mesh for its author: the emulator and a few processes, without CloudFormation and Lambda, which reload at a change.

Entry point: `startup.running`.
"""
