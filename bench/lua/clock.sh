#!/usr/bin/env bash
# Whether io_uring or epoll shifts latency: bench/lua/clock.sh DYNO NULLSERVER [ROUNDS] [SECONDS]
#
# 20,000 events a second over 64 sessions, the client on core 0, the null server on core 1. Each answer holds the server's
# clock, so that the way of the answer to the script is known without dyno's own measurement, which stands beside it.
set -euo pipefail
dyno=$(realpath "$1") null=$(realpath "$2") rounds=${3:-9} seconds=${4:-5}
here=$(cd "$(dirname "$0")" && pwd)
script=$here/clock.lua
. "$here/../median.sh"
work=$(mktemp -d)
cd "$work"
taskset -c 1 "$null" --mysql-socket="$work/socket" >counted 2>said &
server=$!
trap 'kill $server; rm -rf "$work"' EXIT
until grep -q ready said; do sleep 0.1; done

# The value at a share of the sorted lines.
quantile() { sort -n | awk -v q="$1" '{ v[NR] = $1 } END { i = int(NR * q + 0.999999); print v[i < 1 ? 1 : i] / 1000 }'; }

# One run: us at p50 and p99, by the server's clock and by dyno's, go to files of the way's name.
one() {
   local way=$1
   shift
   taskset -c 0 "$dyno" --io "$way" sysbench --mysql-socket="$work/socket" --mysql-user=root --threads=64 --loops=1 \
      --rate=20000 --time="$seconds" --json=result.json "$@" run >out 2>&1 || { cat out; exit 1; }
   python3 -c 'import json; d = json.load(open("result.json"))
for what in "service", "latency":
    for at in "p50", "p99": print(what, at, d[what][at + "_us"])' |
      while read -r what at us; do echo "$us" >>"$way $what $at"; done
   [ ! -e waits.0 ] || for q in 50 99; do cat waits.* | quantile 0.$q >>"$way answer p$q"; done
   rm -f waits.*
}

# All rounds of a test, and what they have found.
compare() {
   for round in $(seq "$rounds"); do
      for way in $([ $((round % 2)) = 1 ] && echo uring epoll || echo epoll uring); do one "$way" "$1"; done
   done
   for what in uring\ *; do
      what=${what#uring }
      echo "$(basename "$1"), $what: io_uring $(median <"uring $what") us, epoll $(median <"epoll $what") us," \
         "ratio $(paste "uring $what" "epoll $what" | awk '{ print $1 / $2 }' | median)"
   done
   rm uring\ * epoll\ *
}

compare oltp_point_select
compare "$script"
