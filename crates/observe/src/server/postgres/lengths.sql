SELECT c.relname, format('SELECT %L, avg(pg_column_size(sampled)) FROM (SELECT * FROM %I LIMIT 200) sampled
HAVING count(*) >= 100', c.relname, c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname = ANY (current_schemas(false)) ORDER BY 1
