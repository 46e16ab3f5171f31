#!/bin/sh
# Captures the statements that pgbench -i sends, from the log of a PostgreSQL server of its own, and
# writes the files init-*.txt in this folder. Needs pgbench and a PostgreSQL server, version 15.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=${PG_BIN:-/usr/lib/postgresql/15/bin}
work=$(mktemp -d)
port=${PG_PORT:-54329}
# The server refuses root.
run=''
if [ "$(id -u)" = 0 ]; then
    chown postgres "$work"
    run='setpriv --reuid=postgres --regid=postgres --clear-groups'
fi
stop() {
    $run "$bin/pg_ctl" -D "$work/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap stop EXIT

$run "$bin/initdb" -D "$work/data" -U postgres -A trust -E UTF8 --locale=C --no-sync \
    --no-instructions >/dev/null
$run mkdir "$work/space"
$run "$bin/pg_ctl" -D "$work/data" -w -l "$work/log" -o "-p $port -k $work -c listen_addresses='' \
    -c fsync=off -c log_statement=all -c log_line_prefix='%q%a>'" start >/dev/null
"$bin/psql" -h "$work" -p "$port" -U postgres -qc "CREATE TABLESPACE \"a space\" LOCATION '$work/space'"
version=$(pgbench --version | cut -d' ' -f3)

capture() { # NAME OPTION...
    name=$1
    shift
    from=$(($(wc -c <"$work/log") + 1))
    pgbench -h "$work" -p "$port" -U postgres -i "$@" postgres >"$work/output" 2>&1 || {
        cat "$work/output"
        exit 1
    }
    {
        echo "# pgbench $version -i $*"
        # Further lines of a statement begin with a tab; the golden file joins them by a blank.
        tail -c "+$from" "$work/log" | awk '
            /^\t/ { sub(/^\t */, " "); if (on) text = text $0; next }
            { if (on) print text; on = 0 }
            sub(/^pgbench>LOG:  statement: /, "") { text = $0; on = 1 }
            END { if (on) print text }'
    } >"$here/init-$name.txt"
}

capture default
capture all-options -s 2 -I dtgvpf -F 90 --unlogged-tables --tablespace='a space' \
    --index-tablespace='a space'
capture range-partitions --partitions=3 --foreign-keys
capture range-bigint -s 30000 -I dt --partitions=7 -F 80 --unlogged-tables
capture hash-partitions --partitions=2 --partition-method=hash -n -s 2
capture server-side -s 3 -I dtGvpf
capture bigint -s 20000 -I dt
capture repeats -I 'dtg Gdtvv'
capture one-partition --partitions=1 -I dt
