//! Search for the known word that a user may have meant.

/// Least similarity of a misspelt word to a known one.
const LIKENESS_MIN: f64 = 0.6;

/// Returns the known word that is most similar to `word`, if any is similar.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    // The first measure suits long names; in short ones it misses swapped letters.
    let likeness = |known: &str| {
        strsim::jaro_winkler(known, &word).max(strsim::normalized_damerau_levenshtein(known, &word))
    };
    let rated = known.into_iter().map(|known| (likeness(known), known));
    let best = rated.max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(likeness, _)| *likeness >= LIKENESS_MIN).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    //! Proves: a misspelt word finds the intended one, in any case of letters; nonsense finds
    //! nothing.
    use super::*;

    #[test]
    fn slips_are_understood() {
        let known = ["buffers-per-disk", "outstanding-per-disk", "queue"];
        assert_eq!(nearest("buffer_per_disk", known), Some("buffers-per-disk"));
        assert_eq!(nearest("QUEU", known), Some("queue"));
        assert_eq!(nearest("xyzzy", known), None);
        assert_eq!(nearest("lur", ["declared", "lru", "mru", "random"]), Some("lru"));
        assert_eq!(nearest("queue", []), None);
    }
}
