"""`python -m talkpath` is the program."""

import os
import sys

from ._program import binary

program = binary()
os.execv(program, [program, *sys.argv[1:]])
