"""Scripts that are loads: each is a process of its own, told its options as JSON on the command line."""
