SHOW GLOBAL STATUS WHERE Variable_name IN (
'Threads_running', 'Innodb_row_lock_current_waits', 'Innodb_buffer_pool_read_requests',
'Innodb_buffer_pool_reads', 'Innodb_pages_read', 'Innodb_pages_written',
'Innodb_buffer_pool_pages_flushed', 'Innodb_lsn_current', 'Innodb_os_log_written',
'Innodb_buffer_pool_pages_dirty', 'Innodb_buffer_pool_pages_total', 'Innodb_checkpoint_age',
'Innodb_checkpoint_max_age', 'Innodb_redo_log_current_lsn', 'Innodb_redo_log_checkpoint_lsn',
'Innodb_history_list_length', 'Com_commit', 'Com_xa_commit', 'Com_rollback', 'Handler_rollback',
'Questions', 'Uptime')
