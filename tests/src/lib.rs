//! The support of the black-box tests: servers on free ports in temporary folders.
