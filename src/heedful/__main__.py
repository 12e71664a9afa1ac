"""`python -m heedful`: the command line."""

from heedful.interfaces.cli import main

main()
