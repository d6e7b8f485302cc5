"""`python -m flows.cli`: the program `whorl`."""

from flows.cli import main

main()
