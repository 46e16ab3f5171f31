SELECT c.relname,
greatest(c.reltuples, nullif(pg_stat_get_live_tuples(c.oid), 0)), EXISTS (SELECT 1 FROM pg_stats s
WHERE s.schemaname = n.nspname AND s.tablename = c.relname)
OR pg_relation_size(c.oid) = 0
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname = ANY (current_schemas(false)) ORDER BY 1
