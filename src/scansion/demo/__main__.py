"""``python -m scansion.demo``: the tour."""

import sys

from scansion.demo.tour import main

sys.exit(main())
