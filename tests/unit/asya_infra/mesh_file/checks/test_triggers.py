"""Triggers in a mesh file: one source, a tool or a route, a payload that can be filled in."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import mesh_problems

pytestmark = pytest.mark.usefixtures("folder")

TOOL = "tools: {t: {route: [a]}}\n"
SLOT_VALUES = "the values are {date}, {scheduled_at}, {time}"


@pytest.mark.parametrize(
    ("trigger", "problems"),
    [
        ('{route: [a], cron: "0 2 * * *"}', []),
        ('{tool: t, cron: "0 2 * * *", timezone: Europe/Oslo, catch_up: 1d, payload: {day: "{date}"}}', []),
        ("{route: [a]}", [".n: has no source; add one of cron, s3, event, webhook"]),
        (
            '{cron: "0 2 * * *"}',
            [".n: has neither a tool nor a route; add tool with the name of a tool, or route with a list of actors"],
        ),
        (
            '{tool: t, route: [a], cron: "0 2 * * *"}',
            [".n: has both a tool and a route; remove one of them"],
        ),
        ('{tool: u, cron: "0 2 * * *"}', [".n.tool: there is no tool 'u'"]),
        (
            '{tool: t, timeout: 1m, cron: "0 2 * * *"}',
            [".n.timeout: is a key of triggers with a route; a tool has its own timeout"],
        ),
        ('{route: [b], cron: "0 2 * * *"}', [".n.route[0]: there is no actor 'b'"]),
        (
            '{route: [a], cron: "0 25 * * *"}',
            [".n.cron: should be a cron expression such as \"0 2 * * *\"; got '0 25 * * *': Bad hour"],
        ),
        (
            "{route: [a], cron: daily}",
            [".n.cron: should be a cron expression of five fields such as \"0 2 * * *\"; got 'daily'"],
        ),
        (
            '{route: [a], cron: "0 2 * * *", timezone: Europe/Olso}',
            [".n.timezone: should be a time zone such as Europe/Oslo; got 'Europe/Olso'; did you mean 'Europe/Oslo'?"],
        ),
        # Names that only some machines know, or files beside the zones.
        *(
            (
                f'{{route: [a], cron: "0 2 * * *", timezone: "{zone}"}}',
                [f".n.timezone: should be a time zone such as Europe/Oslo; got {zone!r}{hint}"],
            )
            for zone, hint in (
                ("localtime", ""),
                ("posix/Europe/Oslo", "; did you mean 'Europe/Oslo'?"),
                ("right/Asia/Tokyo", "; did you mean 'Asia/Tokyo'?"),
                ("posixrules", ""),
                ("tzdata.zi", ""),
                ("/etc/localtime", ""),
                ("../UTC", "; did you mean 'Etc/UTC'?"),
                ("", ""),
            )
        ),
        ('{route: [a], cron: "0 2 * * *", timezone: UTC}', []),
        (
            '{route: [a], cron: "*/90 * * * *"}',
            [
                ".n.cron: '*/90' steps over the 60 values of the minute, so it has the first of them alone. Cron counts no steps "
                "beyond its field. Use a step up to 60, or list the values"
            ],
        ),
        ("{route: [a], event: {source: shop}, debounce: 1h}", [".n.debounce: should be at most 15m; got '1h'"]),
        ('{route: [a], cron: "0 2 * * *", timeout: 0s}', [".n.timeout: should be at least 2s; got '0s'"]),
        # No start could compute the deadline.
        (
            '{route: [a], cron: "0 2 * * *", timeout: 9999999d}',
            [".n.timeout: should be at most 366d; got '9999999d'"],
        ),
        ('{route: [a], cron: "0 2 * * *", catch_up: 1m}', [".n.catch_up: should be at least 2m; got '1m'"]),
        (
            '{route: [a], cron: "0 2 * * *", payload: {day: "{dat}"}}',
            [f".n.payload: there is no value {{dat}}; {SLOT_VALUES}"],
        ),
        (
            '{route: [a], cron: "0 2 * * *", payload: {day: "{date"}}',
            [".n.payload: '{' stands alone; write '{{' for the character"],
        ),
        (
            '{route: [a], cron: "0 2 * * *", payload: {day: x}, input: /day}',
            [".n.input: conflicts with payload; remove one of them"],
        ),
        ('{route: [a], cron: "0 2 * * *", overlap: skip, by: /day}', []),
        ("{route: [a], event: {source: shop}, overlap: queue, batch: {size: 100, window: 1m}}", []),
        ("{route: [a], event: {source: shop}, overlap: cancel-previous, debounce: 30s, by: /key}", []),
        (
            '{route: [a], cron: "0 2 * * *", by: /day}',
            [".n.by: is the key of overlap, debounce and batch; the trigger has none of them"],
        ),
        (
            "{route: [a], event: {source: shop}, debounce: 30s, batch: {size: 2, window: 1m}}",
            [".n.batch: conflicts with debounce; remove one of them"],
        ),
        (
            '{route: [a], cron: "0 2 * * *", debounce: 30s}',
            [".n.debounce: is a key of triggers with s3, event or webhook; the slots of a schedule have their times"],
        ),
        (
            "{route: [a], event: {source: shop}, overlap: skip, debounce: 30s}",
            [".n.overlap: conflicts with debounce: what it has gathered would be lost; use queue"],
        ),
        (
            "{route: [a], event: {source: shop}, overlap: cancel-previous, batch: {size: 2, window: 1m}}",
            [
                ".n.overlap: conflicts with batch: the canceled task has occurrences that the next one has not; use queue"
            ],
        ),
    ],
)
def test_triggers(trigger: str, problems: list[str]) -> None:
    """Each mistake has its key."""
    found = mesh_problems(f"{TOOL}triggers: {{n: {trigger}}}")
    assert [problem.split("triggers", 1)[1] for problem in found] == problems


def test_the_name_of_a_trigger_is_a_label() -> None:
    """It is part of an owner and of URLs."""
    (problem,) = mesh_problems('triggers: {Nightly: {route: [a], cron: "0 2 * * *"}}')
    assert "trigger name 'Nightly' is not a DNS label" in problem


WEBHOOK_VALUES = "the values are {body}, {event}, {received_at}"


@pytest.mark.parametrize(
    ("trigger", "problems"),
    [
        ("{route: [a], webhook: {secret: hooks/github, signature: github}}", []),
        ("{route: [a], input: /data, webhook: {secret: 'ssm:/hooks/stripe', signature: stripe}}", []),
        ("{route: [a], webhook: {secret: k, signature: hmac-sha256, header: Linear-Signature}}", []),
        (
            '{route: [a], webhook: {secret: k, signature: slack}, payload: {of: ["{body}"], at: "at {received_at}"}}',
            [],
        ),
        (
            "{route: [a], webhook: {secret: k, signature: none-at-all}}",
            [
                ".n.webhook.signature: should be 'github', 'stripe', 'slack', 'standard-webhooks' or 'hmac-sha256'; "
                "got 'none-at-all'"
            ],
        ),
        (
            "{route: [a], webhook: {secret: my secret key, signature: github}}",
            [
                ".n.webhook.secret: the text is not the name of a secret of Secrets Manager; the mesh file has names, "
                "never values"
            ],
        ),
        (
            "{route: [a], webhook: {secret: k, signature: github, header: X-Other}}",
            [".n.webhook.header: is a key of hmac-sha256 only; github has headers of its own"],
        ),
        (
            '{route: [a], webhook: {secret: k, signature: github}, payload: {ref: "{ref}"}}',
            [f".n.payload: there is no value {{ref}}; {WEBHOOK_VALUES}"],
        ),
        (
            '{route: [a], webhook: {secret: k, signature: github}, payload: {text: "is {body}"}}',
            [".n.payload: {body} stands for a value that is no text, so it cannot be a part of one"],
        ),
        (
            '{route: [a], cron: "0 2 * * *", webhook: {secret: k, signature: github}}',
            [".n: has cron and webhook; a trigger has one source, so write a trigger for each"],
        ),
    ],
)
def test_webhooks(trigger: str, problems: list[str]) -> None:
    """The text of a secret is never in a message, because it may be the key itself."""
    found = mesh_problems(f"triggers: {{n: {trigger}}}")
    assert [problem.split("triggers", 1)[1] for problem in found] == problems


@pytest.mark.rule("16.webhooks.own-keys")
@pytest.mark.parametrize(
    ("one", "other"),
    [("hooks/a", "hooks/a"), ("ssm:/hooks/a", "ssm:/hooks/a"), ("ssm:a", "ssm:/a"), ("ssm:/a", "ssm:a")],
)
@pytest.mark.parametrize("enabled", ["", "enabled: false, "])
def test_16_two_webhooks_have_two_secrets(one: str, other: str, enabled: str) -> None:
    """Whatever their schemes: who has caught a call of one would start the other."""
    problems = mesh_problems(
        f"triggers:\n  n: {{route: [a], webhook: {{secret: '{one}', signature: github}}}}\n"
        f"  m: {{route: [a], {enabled}webhook: {{secret: '{other}', signature: stripe}}}}\n"
    )
    assert [problem.split("triggers", 1)[1] for problem in problems] == [
        ".m.webhook.secret: is the secret of the trigger 'n' too, so a caught call of one would start the other; "
        "give each webhook a secret with a key of its own"
    ]


@pytest.mark.parametrize(("one", "other"), [("a", "ssm:a"), ("/a", "a"), ("ssm:/a/b", "ssm:/ab"), ("a", "A")])
def test_other_secrets_are_no_shared_ones(one: str, other: str) -> None:
    assert not mesh_problems(
        f"triggers:\n  n: {{route: [a], webhook: {{secret: '{one}', signature: github}}}}\n"
        f"  m: {{route: [a], webhook: {{secret: '{other}', signature: stripe}}}}\n"
    )
