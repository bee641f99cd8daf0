//! A benchmark from URI to result, as a library: far end, floor, placement, repeats, steps, outputs.
