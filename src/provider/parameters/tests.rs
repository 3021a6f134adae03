//! What parameters take, and what they refuse.

use super::*;

fn with(name: &'static str, value: &'static str) -> Result<Parameters, BadParameter> {
    Parameters::read(|variable| (variable == format!("FI_TAGMATCH_{name}")).then(|| value.to_owned()))
}

#[test]
fn every_default_is_within_its_own_range() {
    let defaults = Parameters::read(|_| None).unwrap();
    assert_eq!(defaults.buffer_size, 1 << 20);
    assert_eq!(defaults.keepalive, None);
    assert_eq!(defaults.iface, None);
    for parameter in &TABLE {
        let empty = Parameters::read(|variable| variable.ends_with(parameter.name).then(String::new));
        if parameter.name == "JOB_KEY" {
            let refused = empty.unwrap_err().to_string();
            let text = "FI_TAGMATCH_JOB_KEY=(0 bytes) is refused: it takes text of 16 bytes at least";
            assert_eq!(refused, text, "whoever sets a key does not run without");
        } else {
            assert_eq!(empty.unwrap(), defaults, "an empty {} is as good as none", parameter.name);
        }
    }
}

#[test]
fn numbers_take_units_and_hexadecimal() {
    assert_eq!(with("BUFFER_SIZE", "64k").unwrap().buffer_size, 64 << 10);
    assert_eq!(with("BUFFER_SIZE", " 0x1000 ").unwrap().buffer_size, 4096);
    assert_eq!(with("CREDIT_BYTES", "1G").unwrap().credit_bytes, 1 << 30);
    assert_eq!(with("KEEPALIVE", "250").unwrap().keepalive, Some(Duration::from_millis(250)));
}

#[test]
fn a_bad_value_is_refused_with_name_value_and_range() {
    for (name, value) in [
        ("BUFFER_SIZE", "63"),
        ("BUFFER_SIZE", "2g"),
        ("BUFFER_SIZE", "many"),
        ("BUFFER_SIZE", "-1"),
        ("BUFFER_SIZE", "k"),
        ("CREDIT_BYTES", "18446744073709551615g"),
        ("DATA_AUTO_PROGRESS", "maybe"),
        ("TM", "hard"),
        ("NET", "udp"),
        ("SHM", "perhaps"),
        ("JOB_KEY", "too short"),
    ] {
        let error = with(name, value).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("FI_TAGMATCH_{name}=")), "{text}");
        assert!(text.contains(&error.range.to_string()), "{text}");
        assert_eq!(text.contains(value), name != "JOB_KEY", "{text}");
    }
}

#[test]
fn memory_is_shared_unless_something_else_is_asked_for() {
    let shares = |name, value| with(name, value).unwrap().shares_memory();
    assert!(Parameters::read(|_| None).unwrap().shares_memory());
    assert!(shares("SHM", "auto") && shares("SHM", "1") && shares("TM", "off") && shares("TM", "auto"));
    assert!(!shares("SHM", "off") && !shares("SHM", "0"));
    for (name, value) in
        [("NET", "tcp"), ("NET", "verbs"), ("DEVICE", "mlx5_0"), ("TM", "soft"), ("TM", "require")]
    {
        assert!(!shares(name, value), "{name}={value}");
        let both = Parameters::read(|variable| match variable.strip_prefix("FI_TAGMATCH_") {
            Some("SHM") => Some("on".into()),
            Some(other) if other == name => Some(value.into()),
            _ => None,
        });
        assert!(both.unwrap().shares_memory(), "{name}={value} with SHM=on");
    }
}

#[test]
fn rows_tell_where_a_value_comes_from_and_keep_secrets() {
    let rows = Parameters::rows(|variable| match variable {
        "FI_TAGMATCH_TX_SIZE" => Some("7".into()),
        "FI_TAGMATCH_JOB_KEY" => Some("0123456789abcdef".into()),
        _ => None,
    });
    assert_eq!(rows.len(), TABLE.len());
    for row in rows {
        match row.parameter.name {
            "TX_SIZE" => assert_eq!((row.value.as_str(), row.from_environment), ("7", true)),
            "JOB_KEY" => assert_eq!((row.value.as_str(), row.from_environment), ("(set)", true)),
            _ => assert!(!row.from_environment),
        }
    }
}
