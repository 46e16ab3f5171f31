//! The functions and operators of expressions.

/// A function, or an operator that evaluates all its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Abs,
    Add,
    BitAnd,
    BitOr,
    BitXor,
    Debug,
    Divide,
    ToDouble,
    Equal,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    ToInt,
    Is,
    Least,
    Less,
    LessOrEqual,
    Ln,
    Modulo,
    Multiply,
    Not,
    NotEqual,
    Permute,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    ShiftLeft,
    ShiftRight,
    Sqrt,
    Subtract,
}

/// How many arguments a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arity {
    /// This many.
    Exactly(usize),
    /// At least one.
    Some,
    /// This many, and a seed, which is the variable `default_seed` when it is left out.
    Seeded(usize),
}

const FUNCTIONS: [(&str, Function, Arity); 21] = [
    ("abs", Function::Abs, Arity::Exactly(1)),
    ("debug", Function::Debug, Arity::Exactly(1)),
    ("double", Function::ToDouble, Arity::Exactly(1)),
    ("exp", Function::Exp, Arity::Exactly(1)),
    ("greatest", Function::Greatest, Arity::Some),
    ("hash", Function::HashMurmur2, Arity::Seeded(1)),
    ("hash_fnv1a", Function::HashFnv1a, Arity::Seeded(1)),
    ("hash_murmur2", Function::HashMurmur2, Arity::Seeded(1)),
    ("int", Function::ToInt, Arity::Exactly(1)),
    ("least", Function::Least, Arity::Some),
    ("ln", Function::Ln, Arity::Exactly(1)),
    ("mod", Function::Modulo, Arity::Exactly(2)),
    ("permute", Function::Permute, Arity::Seeded(2)),
    ("pi", Function::Pi, Arity::Exactly(0)),
    ("pow", Function::Power, Arity::Exactly(2)),
    ("power", Function::Power, Arity::Exactly(2)),
    ("random", Function::Random, Arity::Exactly(2)),
    ("random_exponential", Function::RandomExponential, Arity::Exactly(3)),
    ("random_gaussian", Function::RandomGaussian, Arity::Exactly(3)),
    ("random_zipfian", Function::RandomZipfian, Arity::Exactly(3)),
    ("sqrt", Function::Sqrt, Arity::Exactly(1)),
];

/// The names of all functions.
pub(crate) fn function_names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.into_iter().map(|(name, ..)| name)
}

pub(crate) fn is_function_name(name: &str) -> bool {
    find(name.as_bytes()).is_some()
}

/// Name, function and arity of what a script calls by this name, in any case.
pub(crate) fn find(name: &[u8]) -> Option<(&'static str, Function, Arity)> {
    FUNCTIONS.into_iter().find(|(known, ..)| name.eq_ignore_ascii_case(known.as_bytes()))
}
