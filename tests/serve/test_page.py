"""The page of `serve`, clicked through in a headless Chromium: new session, call, undo, fork, reset, edit, close."""

import json

import pytest

from tests.browser import browser  # noqa: F401

from .test_save import start, stop

TITLE = "(document.querySelector('#sessions [aria-current=true]')?.textContent || '')"
NOTE = "document.getElementById('note').textContent"


def button(name):
    return f"document.getElementById('{name}')"


def has_steps(count):
    return f"{button('count')}.textContent === '({count})' && {TITLE}.endsWith('({count})') && {TITLE}"


@pytest.fixture
def served(tmp_path):
    process, client = start(tmp_path)
    yield client
    client.close()
    stop(process)


def cancel(client, session, order="order-2"):
    assert client.post(f"/s/{session}/orders/{order}/cancellation").status_code == 200


def state_of(client, session):
    return client.get(f"/_gecko/sessions/{session}/state").json()


def test_the_page_is_clicked_through(served, browser):  # noqa: F811
    url = f"{served.base_url}/_gecko/"
    browser.open(url)
    assert browser.until(has_steps(0)) == "default (0)"

    browser.click(button("new"))
    title = browser.until(f"{TITLE} !== 'default (0)' && {has_steps(0)}")
    session = title.split(" ")[0]
    assert {one["id"] for one in served.get("/_gecko/sessions").json()["sessions"]} == {"default", session}
    before = state_of(served, session)

    cancel(served, session)  # the page follows by itself
    browser.until(has_steps(1))
    (call,) = browser.run("[...document.querySelectorAll('.call')].map(one => one.innerText)")
    assert "order-2" in call
    assert "POST" in call
    assert "/orders/{order_id}/cancellation" in call
    assert call.endswith("by contract, 3 changes"), "its result is folded"
    browser.click("document.querySelector('.call summary .path')")
    assert "replace /orders/order-2/status" in browser.until("document.querySelector('.call[open]')?.innerText")
    after = state_of(served, session)
    assert json.loads(browser.run("document.getElementById('state').textContent")) == after
    assert browser.run("document.querySelectorAll('#state mark').length") > 0
    assert state_of(served, "default") == before

    browser.click(button("undo"))
    browser.until(has_steps(0))
    assert state_of(served, session) == before
    assert json.loads(browser.run("document.getElementById('state').textContent")) == before

    cancel(served, session)
    browser.until(has_steps(1))
    browser.click(button("fork"))
    fork = browser.until(f"{TITLE} !== '{session} (1)' && {has_steps(1)}").split(" ")[0]
    assert state_of(served, fork) == after

    browser.click(button("reset"))
    assert browser.until(has_steps(0)) == f"{fork} (0)"
    assert (state_of(served, fork), state_of(served, session)) == (before, after)

    browser.click(button("edit"))
    browser.click(button("text"))
    browser.type("{broken")
    browser.click(button("save"))
    assert browser.until(NOTE)
    changed = {**before, "cart": {"TEA-100": 2}}
    browser.click(button("text"))
    browser.type(json.dumps(changed))
    browser.click(button("save"))
    browser.until(f"{button('text')}.hidden && !{NOTE}")
    assert state_of(served, fork) == changed
    browser.until("document.getElementById('state').textContent.includes('TEA-100\": 2')")

    browser.click(button("edit"))
    browser.click(button("text"))
    browser.type("{}")
    cancel(served, fork)  # a call meanwhile does not take the text away
    browser.until(has_steps(1))
    assert browser.run(f"{button('text')}.value") == "{}"
    browser.click(button("cancel"))
    browser.until(f"{button('text')}.hidden")
    assert json.loads(browser.until(f"{button('state')}.textContent"))["cart"] == {"TEA-100": 2}

    browser.click(
        f"[...document.querySelectorAll('#sessions button')].find(one => one.textContent === '{session} (1)')"
    )
    browser.until(f"{TITLE} === '{session} (1)' && {has_steps(1)}")
    browser.click(button("close"))
    assert browser.until(f"{TITLE}.startsWith('default') && {TITLE}") == "default (0)"
    assert session not in {one["id"] for one in served.get("/_gecko/sessions").json()["sessions"]}
    assert not browser.run(NOTE)
    browser.until(f"{button('calls')}.textContent.startsWith('No calls yet')")
    assert browser.look(url) == []
    assert browser.faults == []


def test_a_token_in_the_address_opens_the_page_and_data_is_no_markup(tmp_path, browser):  # noqa: F811
    process, client = start(tmp_path, "--token", "a b&c")
    client.headers["x-gecko-token"] = "a b&c"
    try:
        attack = "</pre><img src=x onerror=alert(1)><script>alert(2)</script>"
        assert client.put("/_gecko/sessions/default/state", json={attack: attack}).status_code == 200
        browser.open(f"{client.base_url}/_gecko/#a%20b%26c")
        browser.until(f"{button('state')}.textContent.includes('onerror')")
        assert browser.run("document.querySelectorAll('img').length") == 0
        browser.click(button("new"))
        browser.until(f"{TITLE} !== 'default (0)' && {has_steps(0)}")
        assert browser.faults == []
    finally:
        client.close()
        stop(process)
