#!/usr/bin/env python3
"""Makes the stored answers of the 22 queries, without any of dyno's code.

    answers.py SCALE FOLDER QUERIES.RS > answers-sfSCALE.txt

Rows: `tpchgen-cli -s SCALE --output-dir FOLDER` (crate tpchgen-cli 4.0.0, `.tbl`).
Texts: QUERIES.RS is src/q_and_a/queries.rs of the crate tpchgen 4.0.0, not dyno's.
Engine: the Python package duckdb (2.0.0 made what is stored), with decimals.

Parameters are the validation defaults, Q11's fraction is 0.0001 divided by the scale factor. Of a
query with a limit, rows that the order does not tell from the last one within it follow behind it.
"""

import re
import sys

import duckdb

DEFAULTS = {
    1: ["90"],
    2: ["15", "BRASS", "EUROPE"],
    3: ["BUILDING", "1995-03-15"],
    4: ["1993-07-01"],
    5: ["ASIA", "1994-01-01"],
    6: ["1994-01-01", ".06", "24"],
    7: ["FRANCE", "GERMANY"],
    8: ["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"],
    9: ["green"],
    10: ["1993-10-01"],
    12: ["MAIL", "SHIP", "1994-01-01"],
    13: ["special", "requests"],
    14: ["1995-09-01"],
    15: ["1996-01-01"],
    16: ["Brand#45", "MEDIUM POLISHED", "49", "14", "23", "45", "19", "3", "36", "9"],
    17: ["Brand#23", "MED BOX"],
    18: ["300"],
    19: ["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"],
    20: ["forest", "1994-01-01", "CANADA"],
    21: ["SAUDI ARABIA"],
    22: ["13", "31", "23", "29", "30", "18", "17"],
}

# Row limit and the columns that the query is ordered by.
LIMITS = {2: (100, (0, 2, 1, 3)), 3: (10, (1, 2)), 10: (20, (2,)), 18: (100, (4, 3)), 21: (100, (1, 0))}

TABLES = {
    "region": "r_regionkey bigint, r_name text, r_comment text",
    "nation": "n_nationkey bigint, n_name text, n_regionkey bigint, n_comment text",
    "supplier": "s_suppkey bigint, s_name text, s_address text, s_nationkey bigint, s_phone text,"
    " s_acctbal decimal(15,2), s_comment text",
    "part": "p_partkey bigint, p_name text, p_mfgr text, p_brand text, p_type text, p_size integer,"
    " p_container text, p_retailprice decimal(15,2), p_comment text",
    "partsupp": "ps_partkey bigint, ps_suppkey bigint, ps_availqty integer,"
    " ps_supplycost decimal(15,2), ps_comment text",
    "customer": "c_custkey bigint, c_name text, c_address text, c_nationkey bigint, c_phone text,"
    " c_acctbal decimal(15,2), c_mktsegment text, c_comment text",
    "orders": "o_orderkey bigint, o_custkey bigint, o_orderstatus text, o_totalprice decimal(15,2),"
    " o_orderdate date, o_orderpriority text, o_clerk text, o_shippriority integer, o_comment text",
    "lineitem": "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber integer,"
    " l_quantity decimal(15,2), l_extendedprice decimal(15,2), l_discount decimal(15,2),"
    " l_tax decimal(15,2), l_returnflag text, l_linestatus text, l_shipdate date,"
    " l_commitdate date, l_receiptdate date, l_shipinstruct text, l_shipmode text, l_comment text",
}


def load(connection, folder):
    for table, columns in TABLES.items():
        # The `|` at the end of each line makes one field more.
        connection.execute(f"create table {table}_ ({columns}, nothing text)")
        connection.execute(
            f"copy {table}_ from '{folder}/{table}.tbl' (delimiter '|', header false, quote '', escape '')"
        )
        connection.execute(f"alter table {table}_ drop column nothing")
        connection.execute(f"alter table {table}_ rename to {table}")


def answer(connection, text, values):
    for index, value in reversed(list(enumerate(values, 1))):
        text = text.replace(f":{index}", value)
    text = text.replace(":s", "0").replace(" day (3)", " day")
    rows = None
    for statement in filter(None, (part.strip() for part in text.split(";"))):
        result = connection.execute(statement)
        if "select" in statement and not statement.startswith("create"):
            rows = result.fetchall()
    return rows


def within(rows, limit, key):
    """The rows within the limit and those that tie with the last of them."""
    if len(rows) <= limit:
        return rows
    last = [rows[limit - 1][column] for column in key]
    end = limit
    while end < len(rows) and [rows[end][column] for column in key] == last:
        end += 1
    return rows[:end]


def main():
    scale, folder, texts = sys.argv[1:]
    source = open(texts, encoding="utf-8").read()
    queries = dict(re.findall(r'pub const Q(\d+): &str = r#"(.*?)"#;', source, re.S))
    connection = duckdb.connect()
    load(connection, folder)
    values = {**DEFAULTS, 11: ["GERMANY", f"{0.0001 / float(scale):.10f}"]}
    for query in range(1, 23):
        rows = answer(connection, queries[str(query)], values[query])
        if query in LIMITS:
            rows = within(rows, *LIMITS[query])
        print(f"Q{query}: {len(rows)}")
        for row in rows:
            print("|".join("\\N" if value is None else str(value) for value in row))


main()
