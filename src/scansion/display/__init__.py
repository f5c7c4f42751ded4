"""Pictures in HTML: what a model learnt, and what it says of sequences."""
from scansion.display.sequence import Sequence, sequence_page
