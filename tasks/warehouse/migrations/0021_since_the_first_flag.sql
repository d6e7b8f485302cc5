-- Since when a node is degraded is told from its first bad execution on, not from the one that raised the alarm.
COMMENT ON COLUMN nodes.states.since IS
    'start of the first flagged execution behind an alarm that goes on, or of the one that cleared it; missing without any';
