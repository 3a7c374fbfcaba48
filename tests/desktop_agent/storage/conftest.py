import pytest


@pytest.fixture(autouse=True)
def create_each_database(makes_databases: None) -> None:
    """Create each database anew, as these tests check how databases are created."""
