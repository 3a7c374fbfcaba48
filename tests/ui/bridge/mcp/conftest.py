from tests.fakes.keyring import kept
from tests.ui.bridge.mcp.collected_here import collected_here

__all__ = ["collected_here", "kept"]
