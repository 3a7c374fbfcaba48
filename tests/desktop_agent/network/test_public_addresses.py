"""Who can be reached by everybody, in all the forms that an address has."""

import pytest

from desktop_agent.network.hosts import is_local_name, is_public_address

PRIVATE = ("10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "0.0.0.0")
PRIVATE_6 = ("::", "::1", "fe80::1%1", "fc00::1", "ff02::1", "64:ff9b::a00:1", "2002:a00:1::", "::ffff:10.0.0.1")
# Site-local, local translation, IPv4-compatible, IPv4-translated, SRv6, and what nobody was given.
UNGIVEN_6 = (
    "fec0::1",
    "64:ff9b:1::7f00:1",
    "64:ff9b:1:7f00:0:100::",
    "::127.0.0.1",
    "::ffff:0:7f00:1",
    "5f00::1",
    "8::1",
)


@pytest.mark.parametrize("address", [*PRIVATE, *PRIVATE_6, *UNGIVEN_6, "255.255.255.255"])
def test_private_addresses_in_all_their_forms(address):
    assert not is_public_address(address)


PUBLIC = ("1.1.1.1", "2606:4700:4700::1111", "64:ff9b::101:101", "64:ff9b:1::101:101", "::ffff:1.1.1.1", "::1.1.1.1")


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses(address):
    assert is_public_address(address)


OWN = ("localhost", "LOCALHOST.", "a.localhost", "printer.local", "metadata.google.internal", "router", "nas.home.arpa")


@pytest.mark.parametrize("name", [*OWN, "x.lan", "x.corp.", "127.0.0.1", "::1"])
def test_names_of_ones_own(name):
    assert is_local_name(name)


@pytest.mark.parametrize("name", ["example.org", "local.example.org", "a.notlocal"])
def test_names_of_everybody(name):
    assert not is_local_name(name)


@pytest.mark.parametrize("address", ["1.1.1.1", "10.0.0.1", "2606:4700:4700::1111"])
def test_an_address_is_no_name(address):
    assert not is_local_name(address)
