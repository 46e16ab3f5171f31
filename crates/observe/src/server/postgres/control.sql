SELECT extract(epoch FROM checkpoint_time) || ' ' || checkpoint_lsn
AS last, pg_wal_lsn_diff(redo_lsn, '0/0') AS redo,
(SELECT setting::numeric * CASE unit WHEN 'MB' THEN 1048576 WHEN '16MB' THEN 16777216 ELSE 1 END
FROM pg_settings WHERE name = 'max_wal_size') AS most FROM pg_control_checkpoint()
