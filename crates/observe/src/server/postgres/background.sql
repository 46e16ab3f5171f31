SELECT CASE backend_type WHEN 'autovacuum worker' THEN query
ELSE 'maintenance: ' || left(regexp_replace(query, '\s+', ' ', 'g'), 60) END
FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'active'
AND (backend_type = 'autovacuum worker'
OR query ~* '^\s*(vacuum|analyze|create (unique )?index|reindex|cluster|checkpoint|alter table)')
