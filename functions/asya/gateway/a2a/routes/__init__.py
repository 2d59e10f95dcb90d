"""The calls of Agent2Agent."""
