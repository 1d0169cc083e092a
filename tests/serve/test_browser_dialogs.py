"""Input in the dialogs of the dashboard, and its effects."""
# ruff: noqa: F401, F811

import pytest

from .test_browser import browser, expect, pytestmark, visit


def opened(service, visit, action, *allowed):
    page = visit(f"{service.url}/studies/a", allowed=allowed)
    page.click(f"#do-{action}")
    return page


def correct(page, field, text):
    page.select_option("#dialog-field", field)
    page.fill("#dialog-value", text)
    page.click("#dialog-yes")


def test_undo_goes_to_no_round_that_nobody_wrote(service, visit):
    service.make()
    service.run(10)
    page = opened(service, visit, "undo")
    expect(page.locator("#dialog-round")).to_have_value("9")
    page.fill("#dialog-round", "")
    page.click("#dialog-yes")
    assert page.evaluate("document.querySelector('#dialog-round').validity.valueMissing")
    page.evaluate("document.querySelector('#dialog-round').required = false")
    page.click("#dialog-yes")
    expect(page.locator("#dialog-wrong")).to_contain_text("Enter a round")
    assert service.get()["seq"] == 10
    page.click("text=Cancel")
    page.click("#do-reset")
    page.click("#dialog-yes")  # which asks for no round
    expect(page.locator("[data-part=happened]")).to_contain_text("to start")


def test_undo_of_what_has_moved_meanwhile_is_refused(service, visit):
    service.make()
    service.run(10)
    page = opened(service, visit, "undo", "412")
    page.fill("#dialog-round", "4")
    service.run(1)
    expect(page.locator("#round")).to_have_text("11")
    page.click("#dialog-yes")
    expect(page.locator("#dialog-wrong")).to_contain_text("read it again first")
    expect(page.locator("#dialog-what")).to_contain_text("Pause a study that is running first")
    assert service.get()["rounds"] == 11


def test_correct_a_radius(service, visit):
    service.make()
    service.run(5)
    page = opened(service, visit, "correct", "422")
    correct(page, "radius", "7")
    expect(page.locator("#dialog-wrong")).to_contain_text("radius")
    page.fill("#dialog-value", ".02")
    page.fill("#dialog-why", "the pump rattles")
    page.click("#dialog-yes")
    expect(page.locator("#dialog")).to_be_hidden()
    expect(page.locator("[data-part=happened]")).to_contain_text("the pump rattles")
    assert service.get()["fields"]["radius"] == 0.02


def test_fields_are_those_of_now(service, visit):
    service.make()
    page = opened(service, visit, "correct")
    page.click("text=Cancel")
    changes = {"radius": 0.02, "guard.stop_above": 9}
    assert service.http.patch("/v1/studies/a", json={"changes": changes, "why": "elsewhere"}).status_code == 200
    expect(page.locator("[data-part=happened]")).to_contain_text("elsewhere")
    page.click("#do-correct")
    for field, now in [("radius", "0.02"), ("guard.stop_above", "9"), ("guard.approval", "false")]:
        page.select_option("#dialog-field", field)
        expect(page.locator("#dialog-value")).to_have_value(now)
        expect(page.locator(f"#dialog-field option[value='{field}']")).to_have_text(f"{field} (now {now})")
    assert page.locator("#dialog-field option[value='guard.dry_run']").count() == 0


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("guard.approval", "true", True),
        ("guard.quiet_hours", '["22:00-06:00"]', ["22:00-06:00"]),
        ("guard.on_failures", "start", "start"),
        ("baseline.knobs", '{"gain": 3, "size": 16}', {"gain": 3.0, "size": 16}),
    ],
)
def test_what_is_typed_is_json_or_a_text(service, visit, field, text, value):
    service.make()
    page = opened(service, visit, "correct")
    correct(page, field, text)
    expect(page.locator("#dialog")).to_be_hidden()
    assert service.get()["fields"][field] == value


def test_a_rail_is_taken_away_by_no_slip(service, visit):
    service.make(guard={"stop_above": 100})
    page = opened(service, visit, "correct")
    for text, said in [
        ("Infinity", "Infinity is not a valid value"),
        ("1e999", "1e999 is too large"),
        ("", "Enter a value"),
        ("null", "null is not a valid value"),
    ]:
        correct(page, "guard.stop_above", text)
        expect(page.locator("#dialog-wrong")).to_contain_text(said)
    assert service.get()["fields"]["guard.stop_above"] == 100
    page.check("#dialog-none")
    expect(page.locator("#dialog-value")).to_be_disabled()
    page.click("#dialog-yes")
    expect(page.locator("#dialog")).to_be_hidden()
    assert service.get()["fields"]["guard.stop_above"] is None
