//! Posted receives in NICs: mirror, life of an entry, phase, policy.
