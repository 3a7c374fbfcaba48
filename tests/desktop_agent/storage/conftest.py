import pytest


@pytest.fixture(autouse=True)
def made_anew(makes_databases: None) -> None:
    """How a database is made is judged here."""
