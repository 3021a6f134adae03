//! Whom receives from anybody are for, by who served the last ones: a class (mask) that other paths serve stays in software,
//! where it would be taken back from the list once a message.
//!
//! Of each class the last 16 receives that ended are known. With [`Served::new`]'s number of them served elsewhere receives
//! of the class stay in software; with a quarter of that they go down again. Both are seen in software as well as in the
//! list, so that nothing has to be tried to find out. A class of which nothing was served elsewhere lately takes no place.
//!
//! Not here: receives whose source is known, by their own word or by the layout of tags. Those need no guess (`nic`).

use crate::ids::Ignore;

use super::overlap::CLASSES_MAX;

/// What one device learned.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    kept_from: u32,
    classes: Vec<Class>,
    posts: u32,
}

#[derive(Clone, Copy, Debug)]
struct Class {
    ignore: Ignore,
    /// A bit for each of the last receives, the newest lowest: another path served it.
    elsewhere: u16,
    is_kept: bool,
}

impl Served {
    /// Receives of a class stay in software when so many of the last 16 were served by other paths; 0: they never do.
    pub(crate) const fn new(kept_from: u8) -> Self {
        Self { kept_from: kept_from as u32, classes: Vec::new(), posts: 0 }
    }

    /// Other paths have served nothing lately.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Whether receives of this class stay in software.
    #[inline]
    pub(crate) fn keeps(&self, ignore: Ignore) -> bool {
        self.classes.iter().any(|class| class.is_kept && class.ignore == ignore)
    }

    /// A receive of this class ended, by this path or elsewhere.
    pub(crate) fn note(&mut self, ignore: Ignore, elsewhere: bool) {
        let kept_from = self.kept_from;
        let at = self.classes.iter().position(|class| class.ignore == ignore);
        let at = match at {
            Some(at) => at,
            None if elsewhere && kept_from > 0 && self.classes.len() < CLASSES_MAX => {
                self.classes.push(Class { ignore, elsewhere: 0, is_kept: false });
                self.classes.len() - 1
            }
            None => return,
        };
        self.classes[at].note(elsewhere, kept_from);
        if self.classes[at].elsewhere == 0 {
            self.classes.swap_remove(at);
        }
    }

    /// A receive was posted: what was long ago counts less, also of a class that is not used any more.
    pub(crate) fn age(&mut self) {
        self.posts = (self.posts + 1) % POSTS;
        if self.posts == 0 {
            let kept_from = self.kept_from;
            self.classes.iter_mut().for_each(|class| class.note(false, kept_from));
            self.classes.retain(|class| class.elsewhere != 0);
        }
    }

    /// What decides about the future.
    pub(crate) fn canonical(&self, out: &mut Vec<u64>) {
        if self.kept_from > 0 {
            out.push(u64::from(self.posts));
            let state =
                |class: &Class| [class.ignore.0, u64::from(class.elsewhere) | u64::from(class.is_kept) << 16];
            out.extend(self.classes.iter().flat_map(state));
        }
    }
}

impl Class {
    fn note(&mut self, elsewhere: bool, kept_from: u32) {
        self.elsewhere = self.elsewhere << 1 | u16::from(elsewhere);
        let ones = self.elsewhere.count_ones();
        self.is_kept = ones >= kept_from || self.is_kept && ones > kept_from / 4;
    }
}

/// After so many receives that were posted, each class counts as served here once.
const POSTS: u32 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: Ignore = Ignore(0xff);

    #[test]
    fn a_class_is_kept_after_some_that_others_served_and_goes_down_when_they_do_no_more() {
        let mut served = Served::new(4);
        for count in 0..4 {
            assert!(!served.keeps(CLASS), "{count}");
            served.note(CLASS, true);
        }
        assert!(served.keeps(CLASS) && !served.keeps(Ignore::NONE));
        let back = (1..=20).find(|_| {
            served.note(CLASS, false);
            !served.keeps(CLASS)
        });
        // Of the last 16 one is left.
        assert_eq!(back, Some(15));
        served.note(CLASS, false);
        assert!(served.is_empty());
    }

    #[test]
    fn one_in_many_is_no_habit_and_a_class_without_use_is_forgotten() {
        let mut served = Served::new(4);
        for number in 0..1000 {
            served.note(CLASS, number % 8 == 0);
            assert!(!served.keeps(CLASS), "{number}");
        }
        (0..16).for_each(|_| served.note(CLASS, true));
        assert!(served.keeps(CLASS));
        (0..16 * POSTS).for_each(|_| served.age());
        assert!(served.is_empty());
    }

    #[test]
    fn nothing_is_kept_where_that_is_not_wanted_and_no_more_classes_than_are_followed() {
        let mut served = Served::new(0);
        served.note(CLASS, true);
        assert!(served.is_empty());
        let mut served = Served::new(1);
        (0..100).for_each(|mask| served.note(Ignore(mask), true));
        assert!(served.keeps(Ignore(15)) && !served.keeps(Ignore(16)));
    }
}
