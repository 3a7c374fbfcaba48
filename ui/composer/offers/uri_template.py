"""Addresses with gaps, filled in (RFC 6570; a value is a text, never a list)."""

import re
from urllib.parse import quote

_EXPRESSION = re.compile(r"\{([+#./;?&]?)([A-Za-z0-9_.,:*%]+)\}")
_RESERVED = ":/?#[]@!$&'()*+,;="
# First, between, whether names are written, and what stays as it is (section 3.2.1).
_OPERATORS = {
    "": ("", ",", False, ""),
    "+": ("", ",", False, _RESERVED),
    "#": ("#", ",", False, _RESERVED),
    ".": (".", ".", False, ""),
    "/": ("/", "/", False, ""),
    ";": (";", ";", True, ""),
    "?": ("?", "&", True, ""),
    "&": ("&", "&", True, ""),
}


def template_variables(template: str) -> tuple[str, ...]:
    """The names of the gaps, in order, each once."""
    names = [_variable_name(each) for found in _EXPRESSION.finditer(template) for each in found[2].split(",")]
    return tuple(dict.fromkeys(names))


def expand_template(template: str, values: dict[str, str]) -> str:
    """The address; a gap without a value becomes nothing."""

    def fill(found: re.Match[str]) -> str:
        first, between, is_named, safe = _OPERATORS[found[1]]
        parts: list[str] = []
        for each in found[2].split(","):
            name, _, length = each.partition(":")
            value = values.get(_variable_name(each), "")
            if not value:
                continue
            cut = value[: int(length)] if length.isdigit() else value
            written = quote(cut, safe=f"{safe}-._~")
            parts.append(f"{name.rstrip('*')}={written}" if is_named else written)
        return first + between.join(parts) if parts else ""

    return _EXPRESSION.sub(fill, template)


def _variable_name(name: str) -> str:
    return name.partition(":")[0].rstrip("*")
