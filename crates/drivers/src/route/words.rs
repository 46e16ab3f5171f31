//! Words before an opening parenthesis. Both lists are sorted, in small letters.

/// Functions of MySQL, MariaDB and PostgreSQL that change neither data nor the session, and whose results don't depend
/// on the session's history. Others are left to the node that takes writes.
#[rustfmt::skip]
pub(super) const SAFE_FUNCTIONS: [&str; 128] = [
    "abs", "adddate", "addtime", "age", "array_agg", "ascii", "avg", "bit_and", "bit_length",
    "bit_or", "bit_xor", "bool_and", "bool_or", "btrim", "cast", "ceil", "ceiling", "char",
    "char_length", "character_length", "chr", "coalesce", "concat", "concat_ws", "convert",
    "convert_tz", "count", "crc32", "cume_dist", "curdate", "current_date", "current_timestamp",
    "curtime", "date", "date_add", "date_format", "date_part", "date_sub", "date_trunc", "datediff",
    "day", "dayofmonth", "dayofweek", "dayofyear", "dense_rank", "every", "exp", "extract", "field",
    "first_value", "floor", "format", "from_unixtime", "generate_series", "greatest",
    "group_concat", "hashtext", "hex", "hour", "if", "ifnull", "instr", "isnull", "json_agg",
    "json_extract", "json_unquote", "json_value", "lag", "last_value", "lcase", "lead", "least",
    "left", "length", "ln", "locate", "log", "log10", "log2", "lower", "lpad", "ltrim", "make_date",
    "max", "md5", "mid", "min", "minute", "mod", "month", "now", "nth_value", "ntile", "nullif",
    "octet_length", "percent_rank", "percentile_cont", "percentile_disc", "position", "pow",
    "power", "quarter", "rank", "repeat", "replace", "reverse", "right", "round", "row_number",
    "rpad", "rtrim", "second", "sign", "sqrt", "std", "stddev", "stddev_pop", "stddev_samp",
    "str_to_date", "string_agg", "strpos", "substr", "substring", "sum", "to_char", "to_date",
    "unix_timestamp", "upper",
];

/// Words of SQL itself that may precede a parenthesis, with types.
#[rustfmt::skip]
pub(super) const TAKES_PARENTHESIS: [&str; 46] = [
    "all", "and", "any", "array", "as", "between", "by", "case", "decimal", "distinct", "else",
    "except", "exists", "filter", "from", "group", "having", "in", "index", "intersect", "interval",
    "is", "join", "key", "lateral", "like", "limit", "not", "numeric", "offset", "on", "or",
    "order", "over", "partition", "row", "select", "set", "some", "then", "union", "using",
    "values", "varchar", "when", "where",
];
