"""The demonstration: labelled references, a simulator, and a tour (``scansion demo``, ``make demo``)."""
