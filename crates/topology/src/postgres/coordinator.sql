-- What the coordinator of `sharded-postgres` knows of its shards, and how tables are spread over them. All of it is in a
-- separate schema: that of the load holds the load's tables only.
CREATE EXTENSION postgres_fdw;
CREATE EXTENSION dblink;
CREATE SCHEMA dyno_shards AUTHORIZATION {user};
SET ROLE {user};
SET search_path = dyno_shards;

-- Partitioning by hash where the hash is the number itself, plus a constant: a row lies on the shard of its number modulo
-- the number of shards. A condition `column = number` leaves one partition, whatever the number; lists of numbers would
-- end somewhere, and an expression such as `column % 4` is not derived from that condition.
RESET ROLE;
CREATE OPERATOR FAMILY modulo USING hash;
CREATE OPERATOR CLASS modulo_int4 FOR TYPE int4 USING hash FAMILY modulo AS
  OPERATOR 1 =, FUNCTION 2 int48pl(int4, int8);
CREATE OPERATOR CLASS modulo_int8 FOR TYPE int8 USING hash FAMILY modulo AS
  OPERATOR 1 =, FUNCTION 2 int8pl(int8, int8);
ALTER OPERATOR FAMILY modulo USING hash ADD OPERATOR 1 = (int4, int8), OPERATOR 1 = (int8, int4);
SET ROLE {user};

-- The server of each shard, by the shard's number from 0.
CREATE TABLE shards(number int PRIMARY KEY, server text NOT NULL);
-- The tables that lie on the shards.
CREATE TABLE tables(name text PRIMARY KEY);

-- Executes statements on all shards at once; returns when all are done. They are committed there, whatever becomes of
-- the transaction here.
CREATE FUNCTION on_shards(statements text) RETURNS void LANGUAGE plpgsql SET search_path = public AS $body$
DECLARE
  shard text;
  problem text;
BEGIN
  FOR shard IN SELECT server FROM dyno_shards.shards LOOP
    PERFORM dblink_connect('dyno ' || shard, shard);
    PERFORM dblink_send_query('dyno ' || shard, statements);
  END LOOP;
  FOR shard IN SELECT server FROM dyno_shards.shards ORDER BY number LOOP
    BEGIN
      -- An answer for each statement, then one without rows.
      WHILE EXISTS (SELECT FROM dblink_get_result('dyno ' || shard) AS (status text)) LOOP END LOOP;
    EXCEPTION WHEN OTHERS THEN
      problem := coalesce(problem, shard || ': ' || SQLERRM);
    END;
  END LOOP;
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION '%', problem;
  END IF;
  FOR shard IN SELECT server FROM dyno_shards.shards LOOP
    PERFORM dblink_disconnect('dyno ' || shard);
  END LOOP;
EXCEPTION WHEN OTHERS THEN
  FOREACH shard IN ARRAY coalesce(dblink_get_connections(), ARRAY[]::text[]) LOOP
    PERFORM dblink_disconnect(shard);
  END LOOP;
  RAISE;
END $body$;

-- Makes a key or an index of this name on all shards that don't have it.
CREATE FUNCTION add_key(name text, statement text) RETURNS void LANGUAGE sql AS $body$
  SELECT dyno_shards.on_shards(format(
    'DO $do$ BEGIN IF to_regclass(%L) IS NULL THEN EXECUTE %L; END IF; END $do$', name, statement))
$body$;

-- Puts an empty table on the shards. Here it has a partition for each of them. Its primary key goes along; here it has
-- none: PostgreSQL makes no unique index over partitions that are elsewhere.
CREATE FUNCTION distribute(name text, by_column text) RETURNS void LANGUAGE plpgsql SET search_path = public AS $body$
DECLARE
  modulus int := (SELECT count(*) FROM dyno_shards.shards);
  columns text;
  keys text;
  -- The lines of the last orders, which Stock-Level reads, are found by their keys only where the planner may ask the
  -- shard for costs. That costs round trips at each planning: too many for tables that each transaction touches.
  estimates text := name LIKE '%order_line';
  shard record;
BEGIN
  SELECT string_agg(format('%I %s%s', attname, format_type(atttypid, atttypmod),
      CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END), ', ' ORDER BY attnum) INTO columns
    FROM pg_attribute WHERE attrelid = name::regclass AND attnum > 0 AND NOT attisdropped;
  SELECT string_agg(format(', CONSTRAINT %I %s', conname, pg_get_constraintdef(oid)), '') INTO keys
    FROM pg_constraint WHERE conrelid = name::regclass AND contype IN ('p', 'u');
  PERFORM dyno_shards.on_shards(
    format('DROP TABLE IF EXISTS %I; CREATE TABLE %I (%s%s)', name, name, columns, keys));
  EXECUTE format('DROP TABLE %I', name);
  EXECUTE format('CREATE TABLE %I (%s) PARTITION BY HASH (%I dyno_shards.modulo_int4)', name, columns, by_column);
  FOR shard IN SELECT server, remainder
      FROM dyno_shards.shards, generate_series(0, modulus - 1) AS remainder
      WHERE satisfies_hash_partition(name::regclass, modulus, remainder, number) LOOP
    EXECUTE format('CREATE FOREIGN TABLE dyno_shards.%I PARTITION OF %I '
      'FOR VALUES WITH (MODULUS %s, REMAINDER %s) SERVER %I '
      'OPTIONS (schema_name ''public'', table_name %L, use_remote_estimate %L)',
      name || '_' || shard.server, name, modulus, shard.remainder, shard.server, name, estimates);
  END LOOP;
  INSERT INTO dyno_shards.tables VALUES (name);
END $body$;

-- Collects statistics on the shards and here: without them Stock-Level compares each row of the stock with each line.
CREATE FUNCTION analyze_table(name text) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  part regclass;
BEGIN
  PERFORM dyno_shards.on_shards(format('VACUUM ANALYZE public.%I', name));
  FOR part IN SELECT inhrelid FROM pg_inherits WHERE inhparent = format('public.%I', name)::regclass LOOP
    EXECUTE format('ANALYZE %s', part);
  END LOOP;
END $body$;

-- A table that is dropped here goes from the shards, too.
CREATE FUNCTION follow_drops() RETURNS event_trigger LANGUAGE plpgsql AS $body$
DECLARE
  gone text;
BEGIN
  FOR gone IN DELETE FROM dyno_shards.tables USING pg_event_trigger_dropped_objects() AS object
      WHERE object_type = 'table' AND schema_name = 'public' AND object_name = name RETURNING name LOOP
    PERFORM dyno_shards.on_shards(format('DROP TABLE IF EXISTS public.%I', gone));
  END LOOP;
END $body$;
RESET ROLE;
CREATE EVENT TRIGGER dyno_drops ON sql_drop EXECUTE FUNCTION follow_drops();
