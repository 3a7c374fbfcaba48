"""The only way to the web: addresses checked before they are asked, bounds on all that comes, and the
proxy of commands.
"""

import sys
from types import ModuleType
from typing import cast

# httpx imports its command line where it finds click: with pygments, and rich in development, 100 modules and 5 MB.
# Whoever imports httpx for this program has imported this package before.
sys.modules.setdefault("httpx._main", cast("ModuleType", None))
