"""Small projects of users: each wrong one must be red, with a message that says why; each right one green."""
