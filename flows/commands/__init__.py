"""The groups of the command line, one file each. They import what is heavy inside their functions."""
