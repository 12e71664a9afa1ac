"""Good ratings as a suite of tests: the questions, the facts, answers and executions that they proved, and
whether a change keeps them."""
