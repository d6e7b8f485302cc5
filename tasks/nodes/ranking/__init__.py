"""How good nodes are: scores, places and ties, what tools say in common, which stand out, how much a rerun differs."""
