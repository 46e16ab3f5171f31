SELECT c.relname, 'table ' || c.relname, concat_ws(', ', CASE c.relpersistence WHEN 'u' THEN 'unlogged' END,
array_to_string(c.reloptions, ', ')) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND (c.relpersistence = 'u' OR c.reloptions IS NOT NULL)
AND n.nspname = ANY (current_schemas(false))
UNION ALL SELECT c.relname, 'statistics of ' || c.relname || '.' || a.attname, 'target ' || a.attstattarget
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE a.attnum > 0 AND a.attstattarget >= 0 AND c.relkind IN ('r', 'p')
AND n.nspname = ANY (current_schemas(false))
UNION ALL SELECT c.relname, 'statistics ' || s.stxname,
regexp_replace(pg_get_statisticsobjdef(s.oid), '^CREATE STATISTICS \S+ ', '')
FROM pg_statistic_ext s JOIN pg_class c ON c.oid = s.stxrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ANY (current_schemas(false))
UNION ALL SELECT c.relname, 'rule ' || c.relname || '.' || r.rulename, concat(regexp_replace(regexp_replace(
pg_get_ruledef(r.oid, true), '^CREATE RULE \S+ AS\s+|;$', '', 'g'), '\s+', ' ', 'g'), CASE r.ev_enabled WHEN 'D' THEN ' disabled'
WHEN 'R' THEN ' for replicas' WHEN 'A' THEN ' always' END)
FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE r.rulename <> '_RETURN' AND n.nspname = ANY (current_schemas(false))
UNION ALL SELECT NULL, 'function ' || p.oid::regprocedure,
'body ' || left(md5(concat(p.prosrc, p.provolatile, p.proparallel, p.procost, p.proconfig)), 8)
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = ANY (current_schemas(false))
AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
AND d.deptype = 'e') ORDER BY 2
