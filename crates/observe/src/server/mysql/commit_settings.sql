SELECT CONCAT('innodb_doublewrite = ', @@global.innodb_doublewrite,
', innodb_flush_log_at_trx_commit = ', @@global.innodb_flush_log_at_trx_commit,
', sync_binlog = ', @@global.sync_binlog)
