"""Public: Heedful in agent frameworks, a module for each; thin.

Each needs the extra of its name, such as `heedful[langchain]`.
"""
