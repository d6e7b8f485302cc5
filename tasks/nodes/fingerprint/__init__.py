"""What the network says of executions and nodes: verdicts, fingerprints, scores, reasons and alarms."""
