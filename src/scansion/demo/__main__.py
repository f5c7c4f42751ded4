"""``python -m scansion.demo``: the tour."""

import sys

from scansion.demo.tour import main

try:
    sys.exit(main())
except KeyboardInterrupt:
    sys.exit(130)
