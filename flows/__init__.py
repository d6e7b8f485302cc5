"""When the work is done: order, retries, schedules and parameters. The only place that imports prefect."""
