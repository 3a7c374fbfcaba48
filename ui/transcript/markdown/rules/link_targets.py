"""Targets of links as the library writes them, at a fraction of its cost where they are ordinary."""

import re
from functools import lru_cache

from markdown_it.common.normalize_url import normalizeLink, validateLink

# An address of the web in which the library finds nothing to encode: all of its letters are allowed where they stand,
# and its host is one that is taken apart and put together again as it was.
_HOST_LABEL = r"[a-zA-Z0-9_+-]{1,63}"
_ORDINARY_URL = re.compile(
    rf"https?://(?=[^/?#]{{1,240}}(?:[/?#]|\Z)){_HOST_LABEL}(?:\.{_HOST_LABEL})*(?::[0-9]+)?"
    r"(?:[/?#](?:[a-zA-Z0-9;/?:@&=+$,_.!~*'()#-]|%[0-9a-fA-F]{2})*)?\Z"
)


def normalize_target(target: str) -> str:
    """As `normalizeLink` of the library has it."""
    return target if _ORDINARY_URL.match(target) else _normalize_unusual(target)


def is_valid_target(target: str) -> bool:
    """As `validateLink` of the library has it."""
    return target.startswith(("https://", "http://")) or validateLink(target)


@lru_cache(maxsize=1024)
def _normalize_unusual(target: str) -> str:
    return normalizeLink(target)
