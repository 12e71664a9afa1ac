"""The command line."""

from heedful.cli.main import main

__all__ = ["main"]
