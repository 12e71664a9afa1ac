"""How opinions become scores: pure functions, no I/O."""
