"""Names of machines."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether the host is this machine itself: localhost, its sub-names (RFC 6761), 127.0.0.0/8 and ::1."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
