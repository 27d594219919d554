def relax(who):
    return None


def memory(*a):
    return 0


Run = None
