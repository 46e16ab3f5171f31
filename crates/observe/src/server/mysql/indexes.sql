SELECT table_name, index_name, seq_in_index, column_name, non_unique
FROM information_schema.statistics WHERE table_schema = DATABASE()
ORDER BY table_name, index_name, seq_in_index
