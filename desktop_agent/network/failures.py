"""Why something of the web did not come."""

from desktop_agent.vocabulary.errors import AgentError, Sentence

TIMEOUT_REMEDY = "Try again, or open the address in a browser."


class FetchFailed(AgentError):
    """What lies there could not be fetched; the sentence is about the host."""

    kind = "not_fetched"
    default_remedy = "Open the address in a browser."


class PrivateHost(FetchFailed):
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


def timeout_error(host: str, seconds: float) -> FetchFailed:
    """For all of it."""
    values = {"host": host, "seconds": f"{seconds:g}"}
    return FetchFailed(Sentence("“{host}” took longer than {seconds} seconds.", values), TIMEOUT_REMEDY)
