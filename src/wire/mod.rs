//! Bytes and values: TMH, RVH, control messages. No state.
