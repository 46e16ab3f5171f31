#!/bin/sh
# Captures what sysbench 1.0.20 sends, from the general log of a MariaDB server of its own, and
# writes the summaries in this folder. Needs sysbench, mariadbd, mariadb-install-db and cargo.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
logs=$work/logs
mkdir "$logs"
stop() {
    if [ -f "$work/pid" ]; then kill "$(cat "$work/pid")"; fi
    for _ in $(seq 100); do [ -f "$work/pid" ] || break; sleep 0.1; done
    rm -rf "$work"
}
trap stop EXIT

user=$(id -un)
mariadb-install-db --no-defaults --user="$user" --auth-root-authentication-method=normal \
    --skip-test-db --datadir="$work/data" --innodb-log-file-size=64M >/dev/null 2>&1
mariadbd --no-defaults --user="$user" --datadir="$work/data" --skip-networking \
    --socket="$work/socket" --pid-file="$work/pid" --innodb-log-file-size=64M \
    --innodb-flush-log-at-trx-commit=0 --log-output=FILE >"$work/errors" 2>&1 &
sql() { mariadb --no-defaults -uroot -S "$work/socket" -e "$1"; }
for _ in $(seq 100); do sql 'SELECT 1' >/dev/null 2>&1 && break; sleep 0.2; done
sql 'CREATE DATABASE sbtest'
version="$(sysbench --version) on MariaDB $(mariadbd --version | sed 's/.*Ver \([^ ]*\).*/\1/')"

bench() { # COMMAND TEST OPTION...
    command=$1
    shift
    sysbench --db-driver=mysql --mysql-socket="$work/socket" --mysql-user=root --mysql-db=sbtest \
        --threads=1 --time=0 "$@" "$command" >"$work/output" || { cat "$work/output"; exit 1; }
}

capture() { # NAME COMMAND TEST OPTION...
    name=$1 command=$2
    shift 2
    printf 'source: %s, general log\ncommand: %s\noptions: %s\n' "$version" "$command" "$*" \
        >"$logs/$name.header"
    sql "SET GLOBAL general_log_file='$logs/$name.log'; SET GLOBAL general_log=1"
    bench "$command" "$@"
    sql 'SET GLOBAL general_log=0'
    # What the client that switches the log off says is not of the test.
    sed -i '/SET GLOBAL general_log=0/d; /select @@version_comment/d' "$logs/$name.log"
}

size="--tables=4 --table-size=10000"
bench prepare oltp_read_write $size
for test in oltp_read_write oltp_read_only oltp_write_only; do
    capture "$test" run "$test" $size --events=400
    capture "$test-text" run "$test" $size --events=400 --db-ps-mode=disable
done
for test in oltp_point_select oltp_update_index oltp_update_non_index oltp_delete; do
    capture "$test" run "$test" $size --events=2000
    capture "$test-text" run "$test" $size --events=500 --db-ps-mode=disable
done
capture oltp_insert run oltp_insert $size --events=500
capture oltp_read_write-counts run oltp_read_write $size --events=200 --point_selects=3 \
    --simple_ranges=2 --sum_ranges=0 --order_ranges=3 --distinct_ranges=2 --index_updates=2 \
    --non_index_updates=3 --delete_inserts=2 --range_size=7
capture oltp_read_only-bare run oltp_read_only $size --events=200 --skip_trx=on --range_selects=off
capture oltp_update_index-counts run oltp_update_index $size --events=200 --index_updates=3
capture oltp_update_non_index-counts run oltp_update_non_index $size --events=200 \
    --non_index_updates=3
for test in select_random_points select_random_ranges; do
    capture "$test" run "$test" --table-size=10000 --events=1000
    capture "$test-text" run "$test" --table-size=10000 --events=300 --db-ps-mode=disable
done
capture select_random_points-counts run select_random_points --table-size=10000 --events=300 \
    --random_points=3
capture select_random_ranges-counts run select_random_ranges --table-size=10000 --events=300 \
    --number_of_ranges=4 --delta=50
for type in uniform gaussian special pareto; do
    capture "distribution-$type" run oltp_point_select --table-size=10000 --events=10000 \
        --rand-type=$type
done
capture distribution-options run oltp_point_select --table-size=10000 --events=10000 \
    --rand-spec-iter=3 --rand-spec-pct=20 --rand-spec-res=50
capture distribution-pareto_h run oltp_point_select --table-size=10000 --events=10000 \
    --rand-type=pareto --rand-pareto-h=0.4
bench cleanup oltp_read_write $size

capture prepare prepare oltp_read_write --tables=2 --table-size=10
bench cleanup oltp_read_write --tables=2
capture prepare-secondary prepare oltp_read_write --table-size=10 --secondary=on \
    --create_secondary=off --mysql_storage_engine=aria
bench cleanup oltp_read_write
capture prepare-no_auto_inc prepare oltp_insert --tables=2 --auto_inc=off
capture oltp_insert-no_auto_inc run oltp_insert --tables=2 --auto_inc=off --events=500
bench cleanup oltp_insert --tables=2
capture prepare-bulk_insert prepare bulk_insert
capture bulk_insert run bulk_insert --events=100000

cd "$here"
DYNO_GOLDEN_LOGS=$logs cargo test -p dyno-sysbench --test it -- --ignored summarize_the_captured_logs
