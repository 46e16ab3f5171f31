#!/usr/bin/env bash
# What row locks cost a client in TPC-C: bench/tpcc/locks.sh COST postgres|mysql PORT [ROUNDS] [SECONDS]
#
# COST is target/release/examples/cost, PORT that of a server on 127.0.0.1 whose user postgres or root has no password and
# which waits for no disk. 16 terminals share 2 warehouses, or have one each. Each of dyno (one loop) and go-tpc works on
# tables of its own; the figures are user + system time of the whole process for a transaction.
set -euo pipefail
cost=$(realpath "$1") kind=$2 port=$3 rounds=${4:-5} seconds=${5:-6}
. "$(dirname "$0")/../median.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
TIMEFORMAT='%U %S'
go=(--host=127.0.0.1 --port="$port" --driver="$kind")
case $kind in
postgres)
   url=postgres://postgres@127.0.0.1:$port/dyno_locks
   go+=(--user=postgres --conn-params=sslmode=disable)
   sql() { psql -qAt -h 127.0.0.1 -p "$port" -U postgres "$@"; }
   settle() { for database in dyno_locks go_locks; do sql -c "VACUUM ANALYZE" "$database"; done; }
   ;;
mysql)
   url=mysql://root@127.0.0.1:$port/dyno_locks
   go+=(--user=root)
   sql() { mariadb --no-defaults -h 127.0.0.1 -P "$port" -u root -e "$2"; }
   settle() { :; }
   ;;
esac

# The file of a name gets microseconds of CPU for a transaction: all, user, system.
measure() { # name command...
   local name=$1 count
   shift
   { time "$@" >out 2>err; } 2>cpu || { cat out err; exit 1; }
   count=$(awk '$1 == "transactions" { sum += $2 }
      /\[Summary\]/ && !/_ERR/ { for (i = 1; i < NF; i++) if ($i == "Count:") sum += $(i + 1) }
      END { print sum }' out)
   awk -v n="$count" '{ print ($1 + $2) * 1e6 / n, $1 * 1e6 / n, $2 * 1e6 / n }' cpu >>"$name"
}

for warehouses in 2 16; do
   for database in dyno_locks go_locks; do
      sql -c "DROP DATABASE IF EXISTS $database" 2>said
      sql -c "CREATE DATABASE $database"
   done
   tpcc=(go-tpc tpcc "${go[@]}" --db go_locks --warehouses="$warehouses")
   "$cost" "$url" load "$warehouses" 4 >out
   "${tpcc[@]}" prepare --no-check --threads=4 >out 2>&1
   "$cost" "$url" run "$warehouses" 16 2 loops=1 >out
   "${tpcc[@]}" run --threads=16 --time=2s >out 2>&1
   settle
   for round in $(seq "$rounds"); do
      measure "dyno $warehouses" "$cost" "$url" run "$warehouses" 16 "$seconds" loops=1
      measure "go $warehouses" "${tpcc[@]}" run --threads=16 --time="${seconds}s"
   done
   for who in dyno go; do
      for what in 1:all 2:user 3:system; do
         echo "$warehouses warehouses, $who, ${what#*:}, us: $(cut -d' ' -f"${what%:*}" <"$who $warehouses" | median)"
      done
   done
   echo "$warehouses warehouses, dyno / go-tpc: $(paste "dyno $warehouses" "go $warehouses" | awk '{ print $1 / $4 }' | median)"
done
