SELECT coalesce(nullif(application_name, ''), host(client_addr), '?'),
sync_state, state, CASE WHEN state = 'streaming'
THEN coalesce(extract(epoch FROM replay_lag), 0) END FROM pg_stat_replication ORDER BY 1
