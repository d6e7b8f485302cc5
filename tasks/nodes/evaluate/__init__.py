"""How well detectors tell stressed executions and scores rank nodes, on anybody's benchmark results; see README.md."""
