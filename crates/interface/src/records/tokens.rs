//! Words of a condition.

/// Word of a condition, with its place in the text.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Token {
    pub(super) word: Word,
    /// First byte in the text.
    pub(super) at: usize,
}

/// Kinds of words.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Word {
    /// Name of a field, or a word of the language.
    Name(String),
    /// Name of a field in quotes.
    Quoted(String),
    Integer(i128),
    Float(f64),
    /// Operator or bracket.
    Mark(&'static str),
}

/// All operators and brackets, longer ones first.
const MARKS: [&str; 20] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "&", "%", "(", ")", "[", "]", "{", "}", ",", "-",
    "!", "+",
];

/// Divides a text into words.
///
/// # Errors
/// The cause, with the place of a character that is none.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (word, length) = if first.is_ascii_digit() || first == '.' {
            number(rest)?
        } else if first.is_alphabetic() || first == '_' {
            let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
            let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            (Word::Name(rest[..length].to_owned()), length)
        } else if first == '"' || first == '\'' {
            let inside = &rest[1..];
            let length = inside.find(first).ok_or(format!("a quote is missing after {rest:?}"))?;
            (Word::Quoted(inside[..length].to_owned()), length + 2)
        } else {
            let mark = MARKS.into_iter().find(|mark| rest.starts_with(mark));
            let mark = mark.ok_or_else(|| format!("{first:?} makes no sense here"))?;
            (Word::Mark(mark), mark.len())
        };
        found.push(Token { word, at });
        at += length;
    }
    Ok(found)
}

/// Reads a number at the start of a text. Returns its length, too.
fn number(text: &str) -> Result<(Word, usize), String> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    if let Some(digits) = hexadecimal {
        let length = digits.find(|it: char| !it.is_ascii_hexdigit()).unwrap_or(digits.len());
        let value = i128::from_str_radix(&digits[..length], 16);
        let value = value.map_err(|_| format!("{:?} is no number", &text[..length + 2]))?;
        return Ok((Word::Integer(value), length + 2));
    }
    let bytes = text.as_bytes();
    let mut length = 0;
    while let Some(byte) = bytes.get(length) {
        let is_sign = matches!(byte, b'+' | b'-') && matches!(bytes[length - 1], b'e' | b'E');
        if !(byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E') || is_sign) {
            break;
        }
        length += 1;
    }
    let word = &text[..length];
    let value = match word.parse::<i128>() {
        Ok(value) => Word::Integer(value),
        Err(_) => Word::Float(word.parse().map_err(|_| format!("{word:?} is no number"))?),
    };
    Ok((value, length))
}
