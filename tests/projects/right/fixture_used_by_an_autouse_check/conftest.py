import pytest


@pytest.fixture(autouse=True)
def nothing_cloned(assert_clones):
    yield
    assert assert_clones == []
