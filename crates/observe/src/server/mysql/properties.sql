SELECT table_name, CONCAT('table ', table_name), CONCAT_WS(', ', engine, row_format, NULLIF(create_options, ''))
FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'
UNION ALL SELECT NULL, CONCAT(LOWER(routine_type), ' ', routine_name),
CONCAT('body ', LEFT(SHA2(CONCAT_WS(' ', routine_definition, is_deterministic, sql_data_access), 256), 8))
FROM information_schema.routines WHERE routine_schema = DATABASE() ORDER BY 2
