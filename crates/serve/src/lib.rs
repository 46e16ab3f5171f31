//! A page that shows runs while they grow, and the history of runs. It reads run folders and nothing
//! else, so that a page that is opened late shows all that was measured.
