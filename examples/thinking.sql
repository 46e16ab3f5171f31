-- A client that reads an account, and thinks for 5 ms before its next one.
\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
\sleep 5 ms
