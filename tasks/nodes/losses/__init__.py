"""The terms of the loss, each a small function, and their sum. Source: Perona, III-C and III-D."""
