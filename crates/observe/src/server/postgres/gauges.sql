SELECT d.xact_commit AS commits, d.xact_rollback AS rollbacks, d.blks_hit AS hits, d.blks_read AS reads,
d.tup_fetched AS fetched, d.tup_inserted + d.tup_updated + d.tup_deleted AS changed,
(SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND backend_type = 'client backend'
AND pid <> pg_backend_pid()) AS active,
(SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock') AS waiting,
(SELECT coalesce(sum(o.xact_commit + o.xact_rollback), 0) FROM pg_stat_database o
WHERE o.datname NOT IN (current_database(), 'rdsadmin', 'cloudsqladmin', 'azure_maintenance', 'azure_sys'))
AS elsewhere, extract(epoch FROM clock_timestamp()) AS elsewhere_at,
extract(epoch FROM pg_postmaster_start_time()) AS started,
extract(epoch FROM pg_conf_load_time()) AS configured,
'fsync = ' || current_setting('fsync') || ', full_page_writes = ' || current_setting('full_page_writes')
|| ', synchronous_commit = ' || current_setting('synchronous_commit') AS commit_settings
FROM pg_stat_database d WHERE d.datname = current_database()
