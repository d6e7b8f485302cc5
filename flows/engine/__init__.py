"""What makes any flow ours: forms, steps, kept runs, artifacts, alarms, the server, deployments."""
