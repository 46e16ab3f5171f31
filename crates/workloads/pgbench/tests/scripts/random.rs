//! Random numbers, hashes and permutations against the installed pgbench.

use crate::support::{Case, Original, run, silent_driver};

const DRAWS: &str = "random(1, 1000000)
random(-5000, 5000)
random(0, 0)
random(1, 3)
random(-4611686018427387903, 4611686018427387903)
random_gaussian(1, 1000000, 10.0)
random_gaussian(-10, 10, 2)
random_gaussian(1, 4611686018427387904, 2.5)
random_exponential(1, 1000000, 10.0)
random_exponential(1, 4611686018427387904, 0.1)
random_exponential(-100, 100, 50)
random_zipfian(1, 1000000, 1.1)
random_zipfian(1, 4611686018427387904, 1.5)
random_zipfian(5, 15, 1.001)
random_zipfian(1, 100, 1000)
permute(:a, 1000000)
permute(:a, 1000000, 42)
permute(:a, 4611686018427387904)
permute(:a, 7)
permute(-:a, 1024)
hash(:a)
hash_murmur2(:a, -1)
hash_fnv1a(:a)
hash_fnv1a(-:a, 12)
:a * 0.1
sqrt(:a)
ln(:a)
exp(:a / 1000000.0)
pow(:a, 0.3)
:a / 7.0
int(:a / 3.0)
random(1, 10) > random(1, 10)
:default_seed
:random_seed
";

#[test]
fn thousands_of_values_equal_those_of_pgbench() {
    let Some(original) = Original::start("random numbers against pgbench", &["-c", "fsync=off"])
    else {
        return;
    };
    let mut script = "\\set a random(1, 1000000)\n".to_owned();
    for draw in DRAWS.lines() {
        script.push_str(&format!("\\set b debug({draw})\n"));
    }
    let driver = silent_driver();
    let mut values = 0;
    for seed in [0, 1, 12345, u64::MAX] {
        let mut case = Case::new(script.as_bytes());
        (case.transactions, case.seed) = (100, seed);
        let (theirs, ours) = (original.run(&case), run(&driver, &case));
        values += theirs.lines().count();
        for (number, (theirs, ours)) in theirs.lines().zip(ours.lines()).enumerate() {
            let draw = DRAWS.lines().nth(number % DRAWS.lines().count()).unwrap();
            assert_eq!(ours, theirs, "seed {seed}: {draw}");
        }
        assert_eq!(ours.lines().count(), theirs.lines().count());
    }
    assert!(values > 13_000, "{values} values were compared");
}
