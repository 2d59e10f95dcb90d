"""Checks the skills of the agent card: each one is a tool, because a message calls a tool by skill id (`§13`)."""

from collections.abc import Iterator

from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.problems import did_you_mean


def check_agent(context: Context) -> Iterator[Finding]:
    """Check that each skill of the agent card is a tool of the mesh."""
    agent, tools = context.mesh.agent, list(context.mesh.tools)
    for number, skill in enumerate((agent and agent.skills) or ()):
        skill_id = skill.get("id")
        if not isinstance(skill_id, str):
            yield ("agent", "skills", number), "has no id; set it to the name of a tool"
        elif skill_id not in tools:
            yield ("agent", "skills", number, "id"), f"there is no tool {skill_id!r}{did_you_mean(skill_id, tools)}"
