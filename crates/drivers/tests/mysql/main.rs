//! MySQL sessions against servers made for the test.

mod disclosure;
mod fake;
mod fakes;

#[global_allocator]
static ALLOCATOR: dyno_testkit::Counting = dyno_testkit::Counting;
