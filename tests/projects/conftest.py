"""Their tests are run inside the tests here, never by the run outside."""

collect_ignore = ["wrong", "right"]
