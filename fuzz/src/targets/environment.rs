//! Run-time parameters. A value is taken or refused by its name; what is shown of them is as many rows whatever they are.

use std::collections::HashMap;

use tagmatch::provider::parameters::Parameters;

pub(super) fn run(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let set: HashMap<&str, &str> = text.split('\n').filter_map(|line| line.split_once('=')).collect();
    let environment = |name: &str| set.get(name).map(|value| (*value).to_owned());
    let rows = Parameters::rows(environment);
    assert_eq!(rows.len(), Parameters::rows(|_| None).len());
    match Parameters::read(environment) {
        Ok(_) => !set.is_empty(),
        Err(refused) => {
            assert!(refused.to_string().contains("FI_TAGMATCH_"), "{refused}");
            false
        }
    }
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let values = [
        "0",
        "1",
        "yes",
        "off",
        "soft",
        "auto",
        "4096",
        "18446744073709551615",
        "-1",
        "0123456789abcdef",
        "1k",
        "",
    ];
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for row in Parameters::rows(|_| None) {
        seeds.extend(values.map(|value| format!("{}={value}", row.variable).into_bytes()));
    }
    seeds
}
