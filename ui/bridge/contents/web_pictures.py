"""Pictures of the web between the screens and the runtime's one way to fetch them."""


class WebPictures:
    """Fetches what the person asks for. A private machine is asked only after they insisted on that very one."""

    def __init__(self) -> None:
        self._refused: dict[str, str] = {}
        self._allowed: dict[str, frozenset[str]] = {}

    async def load(self, address: str, *, insists: bool = False) -> bytes:
        """The bytes of a picture. `insists`: the person read why it was refused, and wants it all the same.

        Raises ImageRefused; its kind is "private_address" where insisting would help.
        """
        # Imported when the first picture is wanted: most people never load one.
        from desktop_agent.providers.transport.web_pictures import PrivateImageHost, fetch_image

        allowed = self._allowed.get(address, frozenset[str]())
        if insists and address in self._refused:
            allowed = self._allowed[address] = allowed | {self._refused.pop(address)}
        try:
            return await fetch_image(address, allowed=allowed)
        except PrivateImageHost as error:
            self._refused[address] = error.host
            raise
