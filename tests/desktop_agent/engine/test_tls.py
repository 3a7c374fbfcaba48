"""A server behind TLS: its certificate is looked at, and a refusal names it."""

from tests.desktop_agent.mcp.certificates import certificate, served
from tests.fakes.mcp_servers import at, stand
from tests.fakes.mcp_site import site


async def test_a_certificate_is_trusted_or_the_server_is_refused(tmp_path, monkeypatch):
    file = certificate(tmp_path, "localhost")
    # Whoever comes is let in.
    async with site(context=served(file), tokens={""}) as there:
        url = f"https://localhost:{there.port}/mcp"
        async with stand(tmp_path, at(url)) as here:
            refused = await here.servers.test("web", None)
            assert (refused.state, refused.tools) == ("failed", ())
            assert "the certificate of “localhost” is not trusted (self-signed certificate)" in str(refused.reason)
            assert "SSL_CERT_FILE" in str(refused.remedy)
            assert there.asked == []
            monkeypatch.setenv("SSL_CERT_FILE", str(file))
            state = await here.servers.test("web", None)
            assert (state.state, [tool.name for tool in state.tools]) == ("running", ["look"])


async def test_a_certificate_of_another_name_is_refused_though_it_is_trusted(tmp_path, monkeypatch):
    file = certificate(tmp_path, "elsewhere.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    async with site(context=served(file), tokens={""}) as there, stand(tmp_path, at(there.url)) as here:
        refused = await here.servers.test("web", None)
        assert refused.state == "failed"
        assert "the certificate of “127.0.0.1” is not trusted (IP address mismatch" in str(refused.reason)
        assert there.asked == []


async def test_one_without_tls_at_an_https_address_is_named_as_such(tmp_path):
    async with site(tokens={""}) as there, stand(tmp_path, at(there.url.replace("http:", "https:"))) as here:
        refused = await here.servers.test("web", None)
        assert "does not speak TLS" in str(refused.reason)
        assert "http://" in str(refused.remedy)
