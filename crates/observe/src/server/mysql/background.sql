SELECT info FROM information_schema.processlist WHERE id <> connection_id()
AND (info LIKE 'ALTER %' OR info LIKE 'OPTIMIZE %' OR info LIKE 'ANALYZE %' OR info LIKE 'CHECK %'
OR info LIKE 'REPAIR %' OR info LIKE 'CREATE INDEX%' OR info LIKE 'BACKUP %')
