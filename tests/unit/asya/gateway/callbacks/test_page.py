"""protocol §11: the page of a callback."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from asya.gateway.callbacks.page import HEADERS, form_page, message_page
from asya.protocol.pause import PauseField, ShownValue, TaskPause

EVIL = "<script>alert(1)</script>\"'&"
PAUSE = TaskPause(
    prompt="Publish it?",
    fields=(
        PauseField(name="approved", type="boolean", prompt="Yes or no?"),
        PauseField(name="title", type="string", required=False, default="Delays"),
        PauseField(name="channel", type="string", options=("web", "mail"), default="web"),
        PauseField(name="tags", type="array", options=("a", "b"), default=["b"]),
        PauseField(name="more", type="object", required=False),
        PauseField(name="count", type="number"),
    ),
    since="2026-11-20T12:00:00.000000Z",
    callback="https://secret",
)


class Elements(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.mark.rule("11.callback.get")
def test_each_field_has_its_input() -> None:
    page = Elements(form_page(PAUSE))
    assert page.of("form") == [{"method": "post"}]
    assert [(each["name"], "required" in each) for each in page.of("select")] == [
        ("approved", True),
        ("channel", False),
    ]
    assert [each["value"] for each in page.of("option") if "selected" in each] == ["", '"web"']
    boxes = [each for each in page.of("input") if each["type"] == "checkbox"]
    assert [(each["value"], "checked" in each) for each in boxes] == [('"a"', False), ('"b"', True)]
    assert [each["name"] for each in page.of("input") if each["type"] == "hidden"] == ["tags"]
    texts = [(each["name"], each["value"], "required" in each) for each in page.of("input") if each["type"] == "text"]
    assert texts == [("title", "Delays", False), ("count", "", True)]
    assert [each["name"] for each in page.of("textarea")] == ["more"]
    labels = {each["for"] for each in page.of("label") if "for" in each}
    assert labels == {"approved", "title", "channel", "more", "count"}


@pytest.mark.rule("11.callback.leaks")
def test_the_page_shows_the_question_and_nothing_else() -> None:
    page = form_page(PAUSE)
    assert "secret" not in page
    assert PAUSE.since not in page


def test_a_pause_without_fields_has_a_button() -> None:
    page = Elements(form_page(TaskPause(prompt="Go on?", fields=(), since=PAUSE.since)))
    assert (page.of("form"), page.of("input"), len(page.of("button"))) == ([{"method": "post"}], [], 1)


@pytest.mark.rule("11.callback.leaks")
def test_nothing_of_a_question_becomes_an_element() -> None:
    field = PauseField(name=EVIL, type="string", prompt=EVIL, options=(EVIL,), default=EVIL)
    free = PauseField(name="free", type="string", default=EVIL)
    listed = PauseField(name="listed", type="array", options=(EVIL,))
    shown = (
        ShownValue(pointer=EVIL, text=EVIL, type="string"),
        ShownValue(pointer="/a", text="javascript:alert(1)", type="string"),
        ShownValue(pointer="/b", text=f'["https://x.example/", "https://x.example/{EVIL}"]', type="array", cut=True),
        ShownValue(pointer=EVIL),
    )
    pause = TaskPause(prompt=EVIL, fields=(field, free, listed), since=PAUSE.since, shown=shown)
    page = Elements(form_page(pause, {EVIL: EVIL, "unknown": EVIL}, {EVIL: [EVIL], "free": [EVIL]}))
    assert page.of("script") == []
    assert [each["href"] for each in page.of("a")] == ["https://x.example/"]
    assert {tag for tag, _ in page.found} <= {
        *(
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "main",
            "h1",
            "p",
            "form",
            "div",
            "label",
            "select",
            "option",
        ),
        *("input", "button", "fieldset", "legend", "textarea", "dl", "dt", "dd", "pre", "span", "a"),
    }
    assert all(not name.startswith("on") for _, attributes in page.found for name in attributes)
    assert Elements(message_page(EVIL, EVIL)).of("script") == []


@pytest.mark.rule("11.callback.post")
def test_problems_and_answers_are_shown_again() -> None:
    page = form_page(PAUSE, {"count": "should be a number", "else": "is not asked for"}, {"count": ["many"]})
    assert page.count('role="alert"') == 2
    assert "else: is not asked for" in page
    (count,) = [each for each in Elements(page).of("input") if each.get("name") == "count"]
    assert count["value"] == "many"


@pytest.mark.rule("11.callback.leaks")
def test_the_policy_allows_the_only_style_and_nothing_else() -> None:
    policy = HEADERS["content-security-policy"]
    (style,) = re.findall(r"<style>(.*?)</style>", form_page(PAUSE), re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    assert (HEADERS["cache-control"], HEADERS["referrer-policy"]) == ("no-store", "no-referrer")
    assert 'style="' not in form_page(PAUSE)
