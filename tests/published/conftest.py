from tests.support.papers import place, run_suite  # noqa: F401
