-- Under what a run was recorded: the view on a machine is learned from runs that had it to themselves.
ALTER TABLE workloads.runs ADD COLUMN conditions STRUCT(recording TEXT, condition TEXT, load TEXT, load_level DOUBLE, partner TEXT, partner_input TEXT, limit_cores DOUBLE, own_share DOUBLE, partner_share DOUBLE, load_share DOUBLE, foreign_share DOUBLE, stolen_share DOUBLE, subject TEXT);
COMMENT ON COLUMN workloads.runs.conditions IS 'what else was at work, and the shares of the cores; missing where nobody says';
