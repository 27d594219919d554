"""What searches share at run time: progress, interrupts, one search at a time, text for people,
sealed files, the log.
"""

import logging

# The library prints nothing: what it tells is for a program that sets a level and a handler.
LOG = logging.getLogger("kepler_traverse")
LOG.addHandler(logging.NullHandler())
