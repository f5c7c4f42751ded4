"""Training: objectives, and optimisers that know only ``f(w) -> (loss, gradient)``."""
