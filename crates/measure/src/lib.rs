//! Recorders, histograms, intervals, samplers and statistics.
