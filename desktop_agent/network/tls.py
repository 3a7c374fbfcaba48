"""Which servers are trusted over TLS: one context for every connection that the program opens."""

import os
import re
import ssl
import sys
from functools import cache

from desktop_agent.types.errors import Sentence

SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Fedora, Red Hat
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine
)
"""Where Linux keeps the certificates that it trusts, those of its owner included: the first of Go's crypto/x509
(`root_linux.go`) for each system. OpenSSL itself would name those of the machine on which the program was packed."""


def tls_context() -> ssl.SSLContext:
    """Return the context that verifies servers. Reads files the first time, for some 20 ms: call it in a thread.

    It trusts what the system trusts; what SSL_CERT_FILE and SSL_CERT_DIR name in its place, as OpenSSL does; on a Linux
    that has no certificates those of Mozilla, from `certifi`. Where they cannot be read it trusts nobody: servers
    without TLS, such as those of this computer, can be used all the same.
    """
    try:
        return _read_context()
    except OSError:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def unreadable_certificates() -> tuple[Sentence, Sentence] | None:
    """Return what is wrong where the certificates cannot be read, and the remedy; None where they can be read.

    That is why a server was not trusted then, whatever TLS says of its certificate.
    """
    try:
        _read_context()
    except OSError as error:
        # OpenSSL's message without its codes.
        why = re.sub(r"^\[.*?\] | \(_ssl\.c:\d+\)$", "", error.strerror or str(error))
        remedy = "Correct or unset SSL_CERT_FILE and SSL_CERT_DIR. If neither is set, repair the system's certificates."
        return Sentence("the certificates of trusted servers cannot be read ({why})", {"why": why}), Sentence(remedy)
    return None


def _read_context() -> ssl.SSLContext:
    return _create_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@cache
def _create_context(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Read the certificates, once for each place: that takes longer than anything else in a client."""
    if file or folder:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    if sys.platform in {"win32", "darwin"}:
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    bundle = next(filter(os.path.isfile, SYSTEM_BUNDLES), None)
    if bundle is None:
        import certifi

        bundle = certifi.where()
    return ssl.create_default_context(cafile=bundle)
