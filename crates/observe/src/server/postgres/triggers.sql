SELECT c.relname, t.tgname, regexp_replace(pg_get_triggerdef(t.oid),
'^CREATE (CONSTRAINT )?TRIGGER \S+ | ON \S+', '', 'g'),
left(md5(p.prosrc), 8), CASE t.tgenabled WHEN 'D' THEN ', disabled'
WHEN 'R' THEN ', for replicas' WHEN 'A' THEN ', always' ELSE '' END
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_proc p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal AND n.nspname = ANY (current_schemas(false))
ORDER BY 1, 2
