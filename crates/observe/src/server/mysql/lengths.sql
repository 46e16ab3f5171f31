SELECT table_name, CONCAT('SELECT ', QUOTE(table_name), ', avg(',
GROUP_CONCAT('COALESCE(LENGTH(`', column_name, '`), 0)' SEPARATOR ' + '),
') FROM (SELECT * FROM `', table_name, '` LIMIT 200) sampled HAVING count(*) >= 100')
FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' AND character_set_name IS NOT NULL
GROUP BY table_name
