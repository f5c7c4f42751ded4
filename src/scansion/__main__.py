"""``python -m scansion`` is the command."""

import sys

from scansion.cli import main

sys.exit(main())
