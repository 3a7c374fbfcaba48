"""The official suite judges our client. docs/mcp.md says why what is not done is not done."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from tests.conformance.suite import Outcome, outcomes

pytestmark = pytest.mark.exhaustive(
    "tests/desktop_agent/mcp/test_http.py", "tests/desktop_agent/engine/test_mcp_sign_in.py"
)

PASSED = (
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
)
NOT_DONE = {
    # Metadata that names another issuer than the one that was asked is refused (RFC 8414, section 3.3).
    "auth/2025-03-26-oauth-metadata-backcompat",
    # Machines without a person.
    "auth/client-credentials-jwt",
    "auth/client-credentials-basic",
    "auth/cross-app-access-complete-flow",
}


@pytest.fixture(scope="module")
def found() -> dict[str, Outcome]:
    with tempfile.TemporaryDirectory(prefix="da-suite-") as folder:
        return asyncio.run(outcomes(Path(folder)))


@pytest.mark.parametrize("scenario", PASSED)
def test_a_scenario_is_passed(found, scenario):
    outcome = found[scenario]
    assert outcome.failed == (), outcome.told
    # One in which nothing at all was looked at says nothing.
    assert outcome.passed > 0, outcome.told


def test_every_scenario_is_accounted_for(found):
    assert set(found) == {*PASSED, *NOT_DONE}
    assert {name for name in NOT_DONE if not found[name].failed} == set()
