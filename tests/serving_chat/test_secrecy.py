"""Nothing of a page or a key where it does not belong; nothing to anybody else; nothing imported early."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest
from scripted_chat import answering

from docmill.chat import ChatRequest
from docmill.failures import DocmillError, failure_of
from docmill.launching import Endpoint
from docmill.ports import PageImage

ROOT = Path(__file__).parents[2]
PAGE = PageImage(b"\x89PNG\r\n\x1a\nJane Doe", "image/png", 1, 1)
QUESTION = ChatRequest(instruction="Jane Doe", images=(PAGE,), closing="born 1980", page_id=None)
SECRET = "s3cret-key"


@pytest.mark.parametrize("status", [200, 400, 404, 401, 500, 503])
async def test_logs_and_messages_hold_neither_pages_nor_keys(made, chat, caplog, status):
    caplog.set_level(logging.DEBUG)
    if status != 200:
        chat.default = answering(status, '{"error":{"message":"Jane Doe, born 1980","code":%d}}' % status)  # noqa: UP031
    client = await made.client(await made.pool(Endpoint(chat.url, api_key=SECRET), failures=99), patience=0.05)
    told = ""
    try:
        answer = await client.ask(QUESTION)
        told = repr(answer)
    except DocmillError as error:
        told = f"{error} {error!r} {failure_of(error).message}"
        assert error.__context__ is None and error.__cause__ is None
    written = caplog.text + told + repr(QUESTION) + repr(client.pool.states())
    for hidden in ("Jane", "1980", SECRET, "iVBORw0KGgo"):
        assert hidden not in written
    assert chat.sent[0].headers["authorization"] == f"Bearer {SECRET}"


async def test_nothing_of_the_environment_is_sent(made, chat, monkeypatch):
    for name in ("API_KEY", "ORG_ID", "PROJECT_ID", "ADMIN_KEY", "WEBHOOK_SECRET"):
        monkeypatch.setenv(f"OPENAI_{name}", "from-the-environment")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Mine: from-the-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/from-the-environment")
    client = await made.client(await made.pool(Endpoint(chat.url)))
    await client.ask(QUESTION)
    headers = chat.sent[0].headers
    assert "from-the-environment" not in repr(headers)
    assert set(headers) == {
        "host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent",
        "x-request-id",
    }  # fmt: skip


async def test_proxies_are_not_used(made, chat, monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert (await (await made.client(await made.pool(Endpoint(chat.url)))).ask(QUESTION)).text == "ok"


@pytest.mark.parametrize(
    "module", ["serving.chat.client", "serving.chat.pool", "serving.chat.attaching", "docmill.chat"]
)
def test_the_sdk_is_not_imported_before_it_is_needed(module):
    code = f"import sys, {module}; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
