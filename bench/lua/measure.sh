#!/usr/bin/env bash
# Client CPU of Lua scripts: bench/lua/measure.sh DYNO SOCKET [ROUNDS] [SECONDS]
#
# DYNO is a release build, SOCKET that of a MariaDB or MySQL whose user root has no password and which has a database
# `sbtest` without tables. sysbench 1.0.20 must be installed. Runs follow one another round by round; each prints its user
# and system time for an event or a query, start-up included. The machine must have nothing else to do.
set -euo pipefail
dyno=$(realpath "$1") socket=$(realpath "$2") rounds=${3:-3} seconds=${4:-8}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
server=(--mysql-socket="$socket" --mysql-user=root)
TIMEFORMAT='%U %S'

# name, label of the count, the command
measure() {
   local name=$1 label=$2
   shift 2
   { time "$@" >out 2>err; } 2>cpu || { cat out err; exit 1; }
   awk -v name="$name" -v count="$(awk -v l="$label" 'index($0, l) { print $NF ~ /sec/ ? $2 : $NF; exit }' out)" \
      '{ cpu = $1 + $2; printf "%-34s %12d  %8.3f us of CPU each\n", name, count, cpu * 1e6 / count }' cpu
}

echo 'function event() end' >empty.lua
for _ in $(seq "$rounds"); do
   measure "empty event, dyno" "total number of events:" "$dyno" sysbench --time="$seconds" ./empty.lua run
   measure "empty event, sysbench" "total number of events:" sysbench --time="$seconds" ./empty.lua run
done

# As somebody has edited it: executed as a script. Without a path the name is that of the script too where it lies in the
# folder, so that the native test runs in another one.
mkdir elsewhere
for script in oltp_common oltp_read_write; do
   { cat "/usr/share/sysbench/$script.lua"; echo 'local edited = true'; } >"$script.lua"
done
tables=("${server[@]}" --tables=4 --table-size=10000 --threads=16 --time="$seconds" --rand-type=uniform)
"$dyno" sysbench "${tables[@]}" oltp_read_write prepare >out
for _ in $(seq "$rounds"); do
   (cd elsewhere && measure "read-write, native test" "total:" "$dyno" sysbench "${tables[@]}" oltp_read_write run)
   measure "read-write, script on dyno" "total:" "$dyno" sysbench "${tables[@]}" ./oltp_read_write.lua run
   measure "read-write, script on sysbench" "total:" sysbench "${tables[@]}" ./oltp_read_write.lua run
done
"$dyno" sysbench "${tables[@]}" oltp_read_write cleanup >out

sysbench "${server[@]}" "$here/tpcc.lua" prepare >out
for _ in $(seq "$rounds"); do
   for program in "$dyno sysbench" sysbench; do
      measure "TPC-C in Lua, queries, ${program##*/}" "total:" $program "${server[@]}" --threads=16 --time="$seconds" "$here/tpcc.lua" run
   done
done
sysbench "${server[@]}" "$here/tpcc.lua" cleanup >out
