SELECT table_name, table_rows, data_length + index_length, engine
FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'
