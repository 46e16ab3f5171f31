\set aid random(1, 100000 * :scale)
\if :aid > 7 and not :aid is null
SELECT 1 \; SELECT 2 \gset x_
\elif case when :aid then 1 end
\sleep 10 ms
\endif
INSERT INTO t VALUES (:aid, E'a\'', $a$ ; $a$); -- x
