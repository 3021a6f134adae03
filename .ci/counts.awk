# Sums up what test programs say at their ends: "test result: ok. 3 passed; 0 failed; 1 ignored; ..."
/^test result: / {
    for (field = 1; field < NF; field++) {
        if ($(field + 1) == "passed;") passed += $field
        if ($(field + 1) == "failed;") failed += $field
        if ($(field + 1) == "ignored;") skipped += $field
    }
}
END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }
