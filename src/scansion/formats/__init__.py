r"""Reading and writing sequences: columns, CSV, CoNLL-U, CRFsuite's items, JSON; plain or gzip, or standard input.

===========  ===========================================================================================================
format       a file holds
===========  ===========================================================================================================
columns      CoNLL's: one token a line, its cells separated by spaces and tabs or by a given separator; blank lines
             between sequences; one or more columns are labels
csv          the same as spreadsheets write it: CSV or TSV with quotes, perhaps names of the columns, and a column that
             is the same for the tokens of a sequence
conllu       CoNLL-U of Universal Dependencies, ten columns with names
crfsuite     one token a line: label, then attributes ``name`` or ``name:weight``, separated by tabs; ``\:`` and ``\\``
             in names; blank lines between sequences
jsonl        one sequence a line, or an array of them: an object with "tokens" (strings, lists of cells, or objects of
             attributes), and "labels", "tags" or "ner_tags" (one a token), "spans" (``[start, stop, label]``) or
             "levels" (lists of spans, the outer first)
===========  ===========================================================================================================

Text is UTF-8, or in the encoding that `Reading` names. Errors are `FormatError`, ``file:line: message``.

A format is a module that reads and writes (see `format_module`) and a line in the table of `reading`. `blocks` is what
files hold, `targets` their labels as a model's y, `answers` a model's answers as labels of the file; none of these is
loaded here, where the command looks up the formats' names.
"""

from __future__ import annotations

from scansion.formats.base import FormatError, format_module, format_of, open_binary
from scansion.formats.reading import FORMATS, Reading

__all__ = ["FORMATS", "FormatError", "Reading", "format_module", "format_of", "open_binary"]
