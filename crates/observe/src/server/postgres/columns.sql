SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
a.attnotnull::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p')
AND n.nspname = ANY (current_schemas(false)) ORDER BY 1, a.attnum
