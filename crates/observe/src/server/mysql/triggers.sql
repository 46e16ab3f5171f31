SELECT event_object_table, trigger_name,
CONCAT(action_timing, ' ', event_manipulation), LEFT(SHA2(action_statement, 256), 8)
FROM information_schema.triggers WHERE trigger_schema = DATABASE()
ORDER BY event_object_table, trigger_name
