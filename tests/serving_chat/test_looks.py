"""What is said of a server that cannot be reached."""

import asyncio
import ssl
import subprocess

import pytest

from docmill.failures import ServerNotReady
from docmill.launching import Endpoint
from serving.chat.health import alive, http_client


async def why(address: str) -> str:
    async with http_client(timeout=5) as client:
        with pytest.raises(ServerNotReady) as caught:
            await alive(client, Endpoint(address))
    return caught.value.message


async def test_a_closed_port_refuses():
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    assert "refused" in await why(f"http://127.0.0.1:{port}")


async def test_a_certificate_that_nobody_vouches_for(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    await asyncio.to_thread(
        subprocess.run, [*made, "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=context)
    async with server:
        told = await why(f"https://localhost:{server.sockets[0].getsockname()[1]}")
    assert "certificate is not trusted" in told and "SSL_CERT_FILE" in told
