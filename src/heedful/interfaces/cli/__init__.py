"""The command line."""

from heedful.interfaces.cli.main import main

__all__ = ["main"]
