//! The macro that gives enums with the derives of `strum` the methods of a word, and lists made of lists.

/// Gives an enum that derives `strum::IntoStaticStr` its `as_str`. With `ALL`, an enum that derives
/// `strum::VariantArray` also gets the array of its values, in the order of their declaration.
#[macro_export]
macro_rules! words {
    ($vis:vis $name:ident) => {
        impl $name {
            /// The word on the wire, in the store and for people.
            $vis fn as_str(self) -> &'static str {
                self.into()
            }
        }
    };
    ($vis:vis $name:ident, $all_vis:vis ALL) => {
        $crate::words!($vis $name);
        impl $name {
            /// Every value, in the order of the declaration.
            $all_vis const ALL: [Self; <Self as ::strum::VariantArray>::VARIANTS.len()] =
                match <Self as ::strum::VariantArray>::VARIANTS.first_chunk() {
                    Some(all) => *all,
                    None => unreachable!(),
                };
        }
    };
}

/// The words of several lists, for labels of metrics. `N` has to be their number.
pub const fn joined<const N: usize>(mut lists: &[&[&'static str]]) -> [&'static str; N] {
    let mut words = [""; N];
    let mut free: &mut [&'static str] = &mut words;
    while let [list, others @ ..] = lists {
        let mut list = *list;
        while let [word, more @ ..] = list {
            let [place, rest @ ..] = free else { break };
            *place = *word;
            list = more;
            free = rest;
        }
        assert!(list.is_empty());
        lists = others;
    }
    assert!(free.is_empty());
    words
}
