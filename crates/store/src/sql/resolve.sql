-- Finds ids by either end, each by an index. The search by the end is MATERIALIZED: otherwise the outer order and limit
-- would make the planner scan all ids until it has found ten.
WITH by_end AS MATERIALIZED (
  SELECT a.alert_id FROM alerts a
  WHERE reverse(right(a.alert_id::text, 12)) COLLATE "C" >= $end_from
    AND reverse(right(a.alert_id::text, 12)) COLLATE "C" < $end_before
    AND replace(a.alert_id::text, '-', '') LIKE $end
), by_beginning AS (
  SELECT a.alert_id FROM alerts a WHERE a.alert_id BETWEEN $first AND $last ORDER BY a.alert_id DESC LIMIT 10
)
SELECT alert_id FROM (TABLE by_end UNION TABLE by_beginning) f ORDER BY alert_id DESC LIMIT 10
