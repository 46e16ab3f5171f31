SELECT CASE WHEN NOT pg_is_in_recovery() THEN NULL
WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
ELSE extract(epoch FROM now() - pg_last_xact_replay_timestamp()) END
