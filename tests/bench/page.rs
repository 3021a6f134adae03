//! The page in a real browser (Debian's chromium, without a window): what is laid out where, and that nothing is fetched.

use super::{File, bench, complaints, measured};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Put behind a copy of the page: looks at what the browser made of it, and writes that into the page.
const LOOKS: &str = r#"
<script>
addEventListener("load", () => {
  const boxes = node => [...node.querySelectorAll("text")].map(text => [text.textContent, text.getBoundingClientRect()]);
  const wrong = [];
  for (const figure of document.querySelectorAll("figure")) {
    const svg = figure.querySelector("svg"), name = figure.getAttribute("aria-label");
    const all = svg.getBoundingClientRect();
    if (all.width < 200 || all.height < 60) wrong.push(`${name}: ${all.width} x ${all.height}`);
    const texts = boxes(svg).filter(([text]) => text.trim());
    if (texts.length < 3) wrong.push(`${name}: no names`);
    for (const [text, box] of texts)
      if (box.left < all.left - 1 || box.right > all.right + 1 || box.top < all.top - 1 || box.bottom > all.bottom + 1)
        wrong.push(`${name}: ${text} is cut off`);
    texts.forEach(([one, a], i) => texts.slice(i + 1).forEach(([other, b]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 3) wrong.push(`${name}: ${one} lies on ${other}`);
    }));
  }
  const seen = {
    wrong,
    figures: document.querySelectorAll("figure svg").length,
    headings: [...document.querySelectorAll("h1, h2")].map(heading => heading.textContent),
    fetched: performance.getEntriesByType("resource").map(entry => entry.name),
    scripts: document.scripts.length,
    images: document.images.length,
    too_wide: document.documentElement.scrollWidth > innerWidth,
    text: document.body.innerText,
  };
  document.body.textContent = "SEEN" + JSON.stringify(seen).replaceAll("<", "\\u003c").replaceAll("&", "\\u0026").replaceAll(">", "\\u003e") + "NEES";
});
</script>
"#;

/// What the browser sees of a page.
fn seen(name: &str, run: &Value) -> Value {
    let (file, page) = (File::of(name, run), File::new(&format!("{name}.html"), ""));
    let output = bench(&["--from", file.path(), "--html", page.path()]);
    assert_eq!(output.status.code(), Some(0), "{}", complaints(&output));
    let html = std::fs::read_to_string(page.path()).unwrap();
    let looked = File::new(&format!("{name}-looked.html"), &(html + LOOKS));
    let dom = browse(looked.path());
    let (_, rest) = dom.split_once("SEEN").unwrap_or_else(|| panic!("the browser saw nothing: {dom}"));
    let (seen, _) = rest.split_once("NEES").unwrap();
    serde_json::from_str(seen).unwrap_or_else(|error| panic!("{error}: {seen}"))
}

fn browse(page: &str) -> String {
    static TURN: Mutex<()> = Mutex::new(());
    // One at a time, each with a profile of its own: who finds another's in use hands its page over to that one.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let profile = Path::new(page).with_extension("browser");
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "600", "chromium", "--headless", "--no-sandbox", "--disable-gpu"]);
    command.args([
        "--disable-dev-shm-usage",
        "--window-size=1280,900",
        "--virtual-time-budget=10000",
        "--dump-dom",
    ]);
    command.arg(format!("--user-data-dir={}", profile.display())).arg(format!("file://{page}"));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let _ = std::fs::remove_dir_all(&profile);
    assert!(
        output.status.success(),
        "chromium cannot be run (apt-get install chromium): {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn names<'a>(seen: &'a Value, what: &str) -> Vec<&'a str> {
    seen[what].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

#[test]
fn the_page_has_every_plot_whole_and_legible_and_fetches_nothing() {
    let seen = seen("page", measured());
    assert_eq!(names(&seen, "wrong"), Vec::<&str>::new());
    // Two at first glance; three by depth, two each by length of the list and by unexpected messages, for two devices,
    // and the traces of both.
    assert_eq!(seen["figures"], 2 + 2 * (3 + 2 + 2) + 2, "{seen}");
    assert_eq!(
        (&seen["fetched"], &seen["images"], &seen["too_wide"]),
        (&Value::Array(vec![]), &0.into(), &false.into())
    );
    assert_eq!(seen["scripts"], 1, "that of this test alone");
    for heading in [
        "Tag matching: offload against software",
        "By the length of the device's list",
        "What the words mean",
    ] {
        assert!(names(&seen, "headings").contains(&heading), "{heading}: {seen}");
    }
    let text = seen["text"].as_str().unwrap();
    for said in ["a model, not a card", "with offload: ", "message was first", "processor time"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let instructions = measured()["instructions_refused"].as_str();
    assert!(instructions.is_none_or(|refused| text.contains(refused)), "{text}");
}

#[test]
fn names_that_are_markup_are_shown_and_do_nothing() {
    let evil = "</svg><script>document.title='no'</script><img src=x onerror=alert(1)>&\"'";
    let mut run = measured().clone();
    for place in [
        "/machine/processor",
        "/build/commit",
        "/devices/0/device",
        "/devices/0/carries",
        "/devices/1/offload/label",
        "/rows/0/name",
        "/instructions_refused",
    ] {
        *run.pointer_mut(place).unwrap() = evil.into();
    }
    run["notes"] = vec![evil].into();
    run["absent"] = serde_json::json!([{ "device": evil, "why": evil }]);
    let seen = seen("markup", &run);
    assert_eq!((&seen["scripts"], &seen["images"]), (&1.into(), &0.into()), "{seen}");
    assert!(seen["text"].as_str().unwrap().contains(evil), "{seen}");
}

#[test]
fn a_run_without_figures_is_a_page_too() {
    let mut run = measured().clone();
    (run["devices"], run["rows"]) = (Vec::<Value>::new().into(), Vec::<Value>::new().into());
    let seen = seen("nothing", &run);
    assert_eq!((&seen["figures"], &seen["wrong"]), (&0.into(), &Value::Array(vec![])), "{seen}");
}
