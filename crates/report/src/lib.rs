//! Tables, TSV, JSON, HTML and plots: pure functions of results.
