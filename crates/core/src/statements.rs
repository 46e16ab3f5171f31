//! A table of prepared statements.

use crate::Statement;

/// Prepared statements by their numbers, which are given again once they are free.
#[derive(Debug)]
pub struct StatementTable<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for StatementTable<T> {
    fn default() -> Self {
        StatementTable { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> StatementTable<T> {
    pub fn add(&mut self, prepared: T) -> Statement {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = Some(prepared);
            return Statement(number);
        }
        self.slots.push(Some(prepared));
        Statement(self.slots.len() as u32 - 1)
    }

    #[inline]
    pub fn get(&self, statement: Statement) -> Option<&T> {
        self.slots.get(statement.0 as usize)?.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, statement: Statement) -> Option<&mut T> {
        self.slots.get_mut(statement.0 as usize)?.as_mut()
    }

    /// Takes a statement out; `None` where there is none of this number.
    pub fn remove(&mut self, statement: Statement) -> Option<T> {
        let removed = self.slots.get_mut(statement.0 as usize)?.take()?;
        self.free.push(statement.0);
        Some(removed)
    }

    pub fn all_mut(&mut self) -> impl Iterator<Item = (Statement, &mut T)> {
        let numbered = self.slots.iter_mut().enumerate();
        numbered.filter_map(|(number, slot)| Some((Statement(number as u32), slot.as_mut()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_given_again_once_it_is_free() {
        let mut table = StatementTable::default();
        let (first, second) = (table.add('a'), table.add('b'));
        assert_eq!(table.remove(first), Some('a'));
        assert_eq!((table.remove(first), table.get(first)), (None, None));
        assert_eq!(table.remove(Statement(7)), None);
        assert_eq!((table.add('c'), table.add('d')), (first, Statement(2)));
        assert_eq!(table.get(first), Some(&'c'));
        assert_eq!(table.get_mut(second), Some(&mut 'b'));
        let all: Vec<_> =
            table.all_mut().map(|(statement, letter)| (statement.0, *letter)).collect();
        assert_eq!(all, [(0, 'c'), (1, 'b'), (2, 'd')]);
    }
}
