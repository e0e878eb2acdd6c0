//! Colours of series: a strategy has the same one in every picture.

/// Names of strategies, with their index into the colours.
const STRATEGIES: [(&str, usize); 7] = [
    ("caching", 0),
    ("two-phase", 1),
    ("disk-directed", 2),
    ("noncollective", 3),
    ("global-barrier", 4),
    ("node-grouping", 5),
    ("disk-directed-unsorted", 7),
];

/// Colour of a series, and what distinguishes it from others of that colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// Index into the colours.
    pub colour: usize,
    /// Number of earlier series of the same colour.
    pub variant: usize,
}

impl Style {
    /// Style of the only series of its colour.
    pub fn plain(colour: usize) -> Self {
        Self { colour, variant: 0 }
    }

    /// True for each second series of a colour: its line is broken.
    pub(crate) fn is_second(self) -> bool {
        self.variant % 2 == 1
    }
}

/// Styles of series with these names. A name that holds that of a strategy has its colour; others
/// have those that are left, in turn.
pub fn styles<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Style> {
    let of_strategies: Vec<Option<usize>> = names.into_iter().map(of_strategy).collect();
    let mut others = (0..).filter(|colour| !of_strategies.contains(&Some(*colour)));
    let mut styles: Vec<Style> = Vec::new();
    for of_strategy in &of_strategies {
        let colour = of_strategy.or_else(|| others.next()).unwrap_or_default();
        let variant = styles.iter().filter(|style| style.colour == colour).count();
        styles.push(Style { colour, variant });
    }
    styles
}

/// Colour of the strategy that is a word of a name.
fn of_strategy(name: &str) -> Option<usize> {
    let words = name.split(|letter: char| !letter.is_ascii_alphabetic() && letter != '-');
    words.into_iter().find_map(|word| {
        STRATEGIES.iter().find(|(strategy, _)| *strategy == word).map(|(_, colour)| *colour)
    })
}

#[cfg(test)]
mod tests {
    //! Proves: a strategy has one colour whatever is beside it, and no two series look the same.
    use super::*;

    #[test]
    fn a_strategy_has_one_colour() {
        let colours = |names: &[&str]| -> Vec<(usize, usize)> {
            let styles = styles(names.iter().copied());
            styles.iter().map(|style| (style.colour, style.variant)).collect()
        };
        assert_eq!(colours(&["caching", "disk-directed"]), [(0, 0), (2, 0)]);
        assert_eq!(colours(&["disk-directed"]), [(2, 0)]);
        let two = ["disk-directed, wc", "two-phase, wc", "disk-directed, rc", "a plain file"];
        assert_eq!(colours(&two), [(2, 0), (1, 0), (2, 1), (0, 0)]);
        assert_eq!(colours(&["1 server", "2 servers"]), [(0, 0), (1, 0)]);
        assert_eq!(colours(&["rb disk-directed-unsorted"]), [(7, 0)]);
    }
}
