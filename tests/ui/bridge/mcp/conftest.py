from tests.ui.bridge.mcp.collected_here import collected_here
from tests.ui.bridge.mcp.keyring_in_memory import kept

__all__ = ["collected_here", "kept"]
