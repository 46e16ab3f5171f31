SELECT table_name, column_name, column_type, is_nullable, character_set_name
FROM information_schema.columns WHERE table_schema = DATABASE()
ORDER BY table_name, ordinal_position
