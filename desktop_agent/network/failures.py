"""Why something of the web did not come."""

from desktop_agent.vocabulary.errors import AgentError, Sentence

TOO_SLOW = "Try again, or open the address in a browser."


class NotFetched(AgentError):
    """What lies there could not be fetched; the sentence is about the host."""

    kind = "not_fetched"
    default_remedy = "Open the address in a browser."


class PrivateHost(NotFetched):
    """The host is this machine, or lies in a private network. `address` is the host itself where no name was asked."""

    kind = "private_address"

    def __init__(self, host: str, address: str) -> None:
        values = {"host": host, "address": address}
        what = "“{host}” is no public server: its address is {address}."
        if host == address:
            what = "“{host}” is no public server."
        super().__init__(Sentence(what, values))
        self.host = host
        self.address = address


def too_slow(host: str, seconds: float) -> NotFetched:
    """For all of it."""
    values = {"host": host, "seconds": f"{seconds:g}"}
    return NotFetched(Sentence("“{host}” took longer than {seconds} seconds.", values), TOO_SLOW)
