//! The statements of all transactions: one text each, written in the words of each dialect.

use dyno_core::{DbError, Dialect, ParamType, Session, Statement};

/// Makes the enum of the statements and the table of their texts.
macro_rules! statements {
    ($($name:ident $text:literal)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Sql {
            $($name),*
        }

        const TEXTS: &[(Sql, &str)] = &[$((Sql::$name, $text)),*];
    };
}

// A parameter is `:i` an integer, `:s` text, `:m` an amount of money, `:t` a point in time.
statements! {
    Begin "BEGIN"
    BeginReadOnly "BEGIN"
    Commit "COMMIT"
    Rollback "ROLLBACK"
    LockDistrict
        "SELECT d_tax, d_next_o_id FROM bmsql_district WHERE d_w_id = :i AND d_id = :i FOR UPDATE"
    CustomerAndTax
        "SELECT c_discount, c_last, c_credit, w_tax FROM bmsql_customer JOIN bmsql_warehouse ON \
         w_id = c_w_id WHERE c_w_id = :i AND c_d_id = :i AND c_id = :i"
    TakeOrderNumber
        "UPDATE bmsql_district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :i AND d_id = :i"
    InsertOrder
        "INSERT INTO bmsql_oorder (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, \
         o_all_local) VALUES (:i, :i, :i, :i, :t, :i, :i)"
    InsertNewOrder "INSERT INTO bmsql_new_order (no_o_id, no_d_id, no_w_id) VALUES (:i, :i, :i)"
    Item "SELECT i_price, i_name, i_data FROM bmsql_item WHERE i_id = :i"
    LockStock
        "SELECT s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, \
         s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10 FROM bmsql_stock WHERE s_w_id = :i \
         AND s_i_id = :i FOR UPDATE"
    UpdateStock
        "UPDATE bmsql_stock SET s_quantity = :i, s_ytd = s_ytd + :i, s_order_cnt = s_order_cnt + \
         1, s_remote_cnt = s_remote_cnt + :i WHERE s_w_id = :i AND s_i_id = :i"
    InsertLine
        "INSERT INTO bmsql_order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, \
         ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES (:i, :i, :i, :i, :i, :i, \
         :i, :m, :s)"
    PayDistrict "UPDATE bmsql_district SET d_ytd = d_ytd + :m WHERE d_w_id = :i AND d_id = :i"
    District
        "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM bmsql_district WHERE \
         d_w_id = :i AND d_id = :i"
    PayWarehouse "UPDATE bmsql_warehouse SET w_ytd = w_ytd + :m WHERE w_id = :i"
    Warehouse
        "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM bmsql_warehouse WHERE \
         w_id = :i"
    CustomersByName
        "SELECT c_id FROM bmsql_customer WHERE c_w_id = :i AND c_d_id = :i AND c_last = :s ORDER \
         BY c_first"
    LockCustomer
        "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, \
         c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance FROM bmsql_customer \
         WHERE c_w_id = :i AND c_d_id = :i AND c_id = :i FOR UPDATE"
    CustomerData "SELECT c_data FROM bmsql_customer WHERE c_w_id = :i AND c_d_id = :i AND c_id = :i"
    PayCustomer
        "UPDATE bmsql_customer SET c_balance = c_balance - :m, c_ytd_payment = c_ytd_payment + \
         :m, c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = :i AND c_d_id = :i AND c_id = :i"
    PayBadCustomer
        "UPDATE bmsql_customer SET c_balance = c_balance - :m, c_ytd_payment = c_ytd_payment + \
         :m, c_payment_cnt = c_payment_cnt + 1, c_data = :s WHERE c_w_id = :i AND c_d_id = :i AND \
         c_id = :i"
    InsertHistory
        "INSERT INTO bmsql_history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, \
         h_data) VALUES (:i, :i, :i, :i, :i, :t, :m, :s)"
    CustomerStatus
        "SELECT c_first, c_middle, c_last, c_balance FROM bmsql_customer WHERE c_w_id = :i AND \
         c_d_id = :i AND c_id = :i"
    LastOrder
        "SELECT o_id, o_entry_d, o_carrier_id FROM bmsql_oorder WHERE o_w_id = :i AND o_d_id = :i \
         AND o_c_id = :i AND o_id = (SELECT max(o_id) FROM bmsql_oorder WHERE o_w_id = :i AND \
         o_d_id = :i AND o_c_id = :i)"
    LinesOfOrder
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM \
         bmsql_order_line WHERE ol_w_id = :i AND ol_d_id = :i AND ol_o_id = :i ORDER BY ol_w_id, \
         ol_d_id, ol_o_id, ol_number"
    OldestNewOrder
        "SELECT no_o_id FROM bmsql_new_order WHERE no_w_id = :i AND no_d_id = :i ORDER BY no_o_id \
         LIMIT 1"
    DeleteNewOrder
        "DELETE FROM bmsql_new_order WHERE no_w_id = :i AND no_d_id = :i AND no_o_id = :i"
    SetCarrier
        "UPDATE bmsql_oorder SET o_carrier_id = :i WHERE o_w_id = :i AND o_d_id = :i AND o_id = \
         :i"
    CustomerOfOrder
        "SELECT o_c_id FROM bmsql_oorder WHERE o_w_id = :i AND o_d_id = :i AND o_id = :i"
    DeliverLines
        "UPDATE bmsql_order_line SET ol_delivery_d = :t WHERE ol_w_id = :i AND ol_d_id = :i AND \
         ol_o_id = :i"
    SumOfLines
        "SELECT sum(ol_amount) FROM bmsql_order_line WHERE ol_w_id = :i AND ol_d_id = :i AND \
         ol_o_id = :i"
    CreditCustomer
        "UPDATE bmsql_customer SET c_balance = c_balance + :m, c_delivery_cnt = c_delivery_cnt + \
         1 WHERE c_w_id = :i AND c_d_id = :i AND c_id = :i"
    LowStock
        "SELECT count(*) FROM bmsql_stock WHERE s_w_id = :i AND s_quantity < :i AND s_i_id IN \
         (SELECT ol_i_id FROM bmsql_district JOIN bmsql_order_line ON ol_w_id = d_w_id AND \
         ol_d_id = d_id AND ol_o_id >= d_next_o_id - 20 AND ol_o_id < d_next_o_id WHERE d_w_id = \
         :i AND d_id = :i)"
}

pub(crate) const COUNT: usize = TEXTS.len();

/// A text in the words of a dialect, and the types of its parameters.
pub(crate) fn in_dialect(sql: Sql, dialect: Dialect) -> (String, Vec<ParamType>) {
    let template = TEXTS[sql as usize].1;
    if sql == Sql::Begin && dialect == Dialect::Sqlite {
        // A reader can't become a writer beside another one.
        return ("BEGIN IMMEDIATE".to_owned(), Vec::new());
    }
    let mut text = String::with_capacity(template.len() + 64);
    let mut types = Vec::new();
    let mut parts = template.split(':');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (kind, rest) = part.split_at(1);
        dialect.push_placeholder(&mut text, types.len() + 1);
        // PostgreSQL takes text for what it is declared as; the others convert it.
        let (declared, cast) = match (kind, dialect) {
            ("i", _) | ("m", Dialect::Sqlite) => (ParamType::Int, ""),
            ("m", Dialect::Postgres) => (ParamType::Text, "::numeric"),
            ("t", Dialect::Postgres) => (ParamType::Text, "::timestamp"),
            _ => (ParamType::Text, ""),
        };
        types.push(declared);
        text.push_str(cast);
        text.push_str(rest);
    }
    if dialect == Dialect::Sqlite {
        // Its writers exclude each other from their begin on.
        text = text.replace(" FOR UPDATE", "");
    }
    (text, types)
}

/// True for what sessions of a dialect do without: those of MySQL are out of autocommit mode
/// instead, as JDBC has them.
fn is_needless(sql: Sql, dialect: Dialect) -> bool {
    matches!(sql, Sql::Begin | Sql::BeginReadOnly) && dialect == Dialect::Mysql
}

pub fn prepared_statements(dialect: Dialect) -> u32 {
    TEXTS.iter().filter(|&&(sql, _)| !is_needless(sql, dialect)).count() as u32
}

/// MySQL's ER_MAX_PREPARED_STMT_COUNT_REACHED.
const TOO_MANY_PREPARED: u32 = 1461;

#[derive(Clone, Debug)]
pub(crate) struct Statements([Statement; COUNT]);

impl Statements {
    pub(crate) async fn prepare<S: Session>(session: &mut S) -> Result<Self, DbError> {
        let dialect = session.dialect();
        let mut prepared = [Statement(0); COUNT];
        for (slot, &(sql, _)) in prepared.iter_mut().zip(TEXTS) {
            if is_needless(sql, dialect) {
                continue;
            }
            let (text, types) = in_dialect(sql, dialect);
            *slot = session.prepare(&text, &types).await.map_err(with_remedy)?;
        }
        Ok(Statements(prepared))
    }

    #[inline]
    pub(crate) fn get(&self, sql: Sql) -> Statement {
        self.0[sql as usize]
    }
}

fn with_remedy(error: DbError) -> DbError {
    if error.errno() != TOO_MANY_PREPARED {
        return error;
    }
    let count = prepared_statements(Dialect::Mysql);
    error.with_hint(format!(
        "each session prepares {count} statements: SET GLOBAL max_prepared_stmt_count = 1048576 on \
         the server, or use fewer sessions"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_mysql_prepare_no_begin() {
        assert_eq!(prepared_statements(Dialect::Mysql) as usize, COUNT - 2);
        assert_eq!(prepared_statements(Dialect::Postgres) as usize, COUNT);
    }

    #[test]
    fn parameters_are_in_the_words_of_the_dialect() {
        let (postgres, types) = in_dialect(Sql::InsertHistory, Dialect::Postgres);
        assert!(postgres.ends_with("($1, $2, $3, $4, $5, $6::timestamp, $7::numeric, $8)"));
        assert_eq!(types[4..], [ParamType::Int, ParamType::Text, ParamType::Text, ParamType::Text]);
        let (sqlite, types) = in_dialect(Sql::InsertHistory, Dialect::Sqlite);
        assert!(sqlite.ends_with("(?, ?, ?, ?, ?, ?, ?, ?)"));
        assert_eq!(types[6], ParamType::Int);
        assert!(!in_dialect(Sql::LockStock, Dialect::Sqlite).0.contains("FOR UPDATE"));
        assert!(in_dialect(Sql::LockStock, Dialect::Mysql).0.ends_with(" = ? FOR UPDATE"));
    }
}
