#!/usr/bin/env bash
# Client CPU of Lua scripts: bench/lua/measure.sh DYNO SOCKET [ROUNDS] [SECONDS]
#
# DYNO is a release build, SOCKET that of a MariaDB or MySQL whose user root has no password and which has a database
# `sbtest` without tables. sysbench 1.0.20 must be installed. The machine must have nothing else to do.
set -euo pipefail
dyno=$(realpath "$1") socket=$(realpath "$2") rounds=${3:-5} seconds=${4:-6}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../median.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
server=(--mysql-socket="$socket" --mysql-user=root)
TIMEFORMAT='%U %S'

# Runs a command; its user and system time for an event or a query, start-up included, goes to the file of its name.
# name, label of the count, the command
measure() {
   local name=$1 label=$2
   shift 2
   { time "$@" >out 2>err; } 2>cpu || { cat out err; exit 1; }
   awk -v count="$(awk -v l="$label" 'index($0, l) { print $NF ~ /sec/ ? $2 : $NF; exit }' out)" \
      '{ printf "%.3f\n", ($1 + $2) * 1e6 / count }' cpu | tee -a "$name" | sed "s/^/$name, us of CPU each: /"
}

# Runs each of its functions once a round, every other round the other way round: a server becomes slower with the rows
# that it has changed, and what always came last would pay for it.
each_round() {
   local forth=$* back
   back=$(printf '%s\n' "$@" | tac)
   for round in $(seq "$rounds"); do
      for one in $([ $((round % 2)) = 1 ] && echo "$forth" || echo "$back"); do "$one"; done
   done
}

# The ratio of two names, of each round.
ratio() { echo "$1 / $2: $(paste "$1" "$2" | awk '{ print $1 / $2 }' | median)"; }

echo 'function event() end' >empty.lua
empty_dyno() { measure "empty event, dyno" "total number of events:" "$dyno" sysbench --time="$seconds" ./empty.lua run; }
empty_sysbench() { measure "empty event, sysbench" "total number of events:" sysbench --time="$seconds" ./empty.lua run; }
each_round empty_dyno empty_sysbench

# As somebody has edited it: executed as a script. Without a path the name is that of the script too where it lies in the
# folder, so that the native test runs in another one.
mkdir elsewhere
for script in oltp_common oltp_read_write; do
   { cat "/usr/share/sysbench/$script.lua"; echo 'local edited = true'; } >"$script.lua"
done
tables=("${server[@]}" --tables=4 --table-size=10000 --threads=16 --time="$seconds" --rand-type=uniform)
read_write=(./oltp_read_write.lua "${tables[@]}" run)
native() { measure "read-write, native" "total:" env --chdir=elsewhere "$dyno" sysbench oltp_read_write "${tables[@]}" run; }
script() { measure "read-write, script" "total:" "$dyno" sysbench "${read_write[@]}"; }
original() { measure "read-write, sysbench" "total:" sysbench "${read_write[@]}"; }
"$dyno" sysbench "${tables[@]}" oltp_read_write prepare >out
each_round native script original
# What LuaJIT itself takes, functions of dyno's left out: a script costs so much more whoever executes it.
interpreter() {
   perf record --quiet -e cpu-clock -o perf.data "$dyno" sysbench "${read_write[@]}" >out 2>err
   perf report -i perf.data --no-children --sort sym -g none 2>err |
      awk '$3 ~ /^(lj_|lua_|luaL_)/ { share += $1 } END { printf "%.4f\n", share / 100 }'
}
if command -v perf >where; then
   for round in $(seq "$rounds"); do interpreter; done >share
   paste share "read-write, script" | awk '{ printf "%.3f\n", $1 * $2 }' >"read-write, LuaJIT alone"
fi
"$dyno" sysbench "${tables[@]}" oltp_read_write cleanup >out

tpcc=("${server[@]}" --threads=16 --time="$seconds" "$here/tpcc.lua")
tpcc_dyno() { measure "TPC-C, dyno" "total:" "$dyno" sysbench "${tpcc[@]}" run; }
tpcc_sysbench() { measure "TPC-C, sysbench" "total:" sysbench "${tpcc[@]}" run; }
sysbench "${tpcc[@]}" prepare >out
each_round tpcc_dyno tpcc_sysbench
sysbench "${tpcc[@]}" cleanup >out

ratio "empty event, dyno" "empty event, sysbench"
ratio "read-write, script" "read-write, native"
ratio "read-write, sysbench" "read-write, native"
[ ! -e share ] || ratio "read-write, LuaJIT alone" "read-write, native"
ratio "TPC-C, dyno" "TPC-C, sysbench"
