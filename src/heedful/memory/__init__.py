"""Remember, recall, signal, forget: what a user does with facts."""
