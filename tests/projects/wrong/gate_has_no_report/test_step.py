def test_step():
    pass
