-- Read-only load of the POLARDB for Oracle white paper: the balance of one account. :range is the number of accounts that are
-- drawn from. With a parameter of 10 the keys crowd around the middle of that range: 68 % of them fall into its middle tenth.
\set aid random_gaussian(1, :range, 10.0)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
