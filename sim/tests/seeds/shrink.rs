//! A script that fails is made short: lines are taken away, more of them at a time at first, and what the setting makes
//! hard is made easy, as long as it still fails.
//!
//! Not here: why it fails.

use super::script::{Op, Script, Setting};

/// The shortest script found that still fails, in at most about so many tries.
pub(super) fn shrink(script: &Script, tries_max: usize, fails: impl Fn(&Script) -> bool) -> Script {
    let mut shrinking = Shrinking { script: script.clone(), tries: 0, tries_max, fails };
    // What is left out makes other things needless.
    loop {
        let before = shrinking.script.clone();
        shrinking.lines();
        shrinking.setting();
        shrinking.turns();
        if shrinking.script == before || shrinking.tries >= tries_max {
            return shrinking.script;
        }
    }
}

struct Shrinking<F> {
    script: Script,
    tries: usize,
    tries_max: usize,
    fails: F,
}

impl<F: Fn(&Script) -> bool> Shrinking<F> {
    /// Keep it if it fails as well.
    fn attempt(&mut self, other: Script) -> bool {
        self.tries += 1;
        let is_kept = self.tries <= self.tries_max && (self.fails)(&other);
        if is_kept {
            self.script = other;
        }
        is_kept
    }

    fn lines(&mut self) {
        let mut size = (self.script.ops.len() / 2).max(1);
        loop {
            let mut at = 0;
            while at < self.script.ops.len() && self.tries < self.tries_max {
                let mut other = self.script.clone();
                let end = (at + size).min(other.ops.len());
                other.ops.drain(at..end);
                if !self.attempt(other) {
                    at += size;
                }
            }
            if size == 1 {
                return;
            }
            size = (size / 2).max(1);
        }
    }

    fn setting(&mut self) {
        let easy: [fn(&mut Setting); 10] = [
            |it| it.delay = 0,
            |it| it.split = 0,
            |it| it.full = 0,
            |it| it.posted = 0,
            |it| it.unexposed = 0,
            |it| it.near = 0,
            |it| it.has_key = 0,
            |it| it.keepalive = 0,
            |it| it.tags = 0,
            |it| it.segmented_limit = 0,
        ];
        for make_easy in easy {
            let mut other = self.script.clone();
            make_easy(&mut other.setting);
            if other != self.script {
                self.attempt(other);
            }
        }
    }

    /// Turns behind turns are one line.
    fn turns(&mut self) {
        let mut ops: Vec<Op> = Vec::new();
        for &op in &self.script.ops {
            if let (Some(Op::Turns { count }), Op::Turns { count: more }) = (ops.last_mut(), op) {
                *count += more;
            } else {
                ops.push(op);
            }
        }
        let other = Script { ops, ..self.script.clone() };
        if other != self.script {
            self.attempt(other);
        }
    }
}
