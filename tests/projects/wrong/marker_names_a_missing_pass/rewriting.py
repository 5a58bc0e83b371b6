def rewrite(gm):
    pass
