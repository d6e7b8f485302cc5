-- The order of nodes rests on scores and the shared component; the first principal component is a row of evaluations.
ALTER TABLE nodes.scores DROP COLUMN pc1;
