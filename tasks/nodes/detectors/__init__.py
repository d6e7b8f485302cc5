"""Plain ways to tell that an execution is not like the others: larger scores are more anomalous.

Each is a function of a Case (`case`): what may be learned from, and all executions in time order. `registry` names
them; a learned model joins them there. What a detector says of an execution may rest on the training executions and on
earlier executions of any kind, never on later ones that are not in training: tests change the later ones.
"""
