//! Conditions, keys and numbers, as users write them, in the manner of Python.
//!
//! ```text
//! energy > 5.0 and (0 <= x < 1 or kind in {1, 2, 3}) and not flags & 0x4
//! hash(id) % 16                 key of a client
//! bin(x, 0, 0.25)               floor((x - 0) / 0.25)
//! position[2]                   element of a field with several
//! custom.mass(px, py, energy)   function that the program of the servers has added
//! answer()                      number that an operator or a module gave to the record
//! ```

use super::record_type::RecordType;
use super::tokens::{Token, Word, tokens};
use crate::UserError;
use policy::{Comparison, Constant, EXPRESSION_NODES_MAX, Expression, FieldAt, Node, ValueKind};

/// Start of the name of a function that the program of the servers has added.
const FUNCTIONS: &str = "custom.";

/// Largest number of brackets inside one another.
const DEPTH_MAX: u32 = 64;

/// Largest number of bytes of a condition.
const TEXT_BYTES_MAX: usize = 1 << 16;

const HELP: &str = "write it as in Python, for example \"energy > 5.0 and 0 <= x < 1\"; \
                    operators: and, or, not, comparisons, in {...}, & mask, % n, hash(), \
                    bin(value, low, width)";

/// Reads a condition over the fields of a record.
///
/// # Errors
/// A text that makes no sense, and fields that are not there.
pub fn predicate_of(records: &RecordType, text: &str) -> Result<Expression, UserError> {
    let read = |parser: &mut Parser<'_>| {
        let item = parser.either()?;
        let truth = parser.truth(item)?;
        parser.finish(truth)
    };
    parse(records, "condition", text, read)
}

/// Reads a key: an integer that names a client.
///
/// # Errors
/// As for [`predicate_of`].
pub fn key_of(records: &RecordType, text: &str) -> Result<Expression, UserError> {
    let read = |parser: &mut Parser<'_>| {
        let item = parser.value()?;
        let node = parser.node(item)?;
        match parser.kind(node)? {
            ValueKind::Signed | ValueKind::Unsigned => parser.finish(node),
            _ => Err("a key is an integer: use bin() or hash() to make one".to_owned()),
        }
    };
    parse(records, "key", text, read)
}

/// Reads a number of a record.
///
/// # Errors
/// As for [`predicate_of`].
pub fn number_of(records: &RecordType, text: &str) -> Result<Expression, UserError> {
    let read = |parser: &mut Parser<'_>| {
        let item = parser.value()?;
        let node = parser.node(item)?;
        match parser.kind(node)? {
            ValueKind::Truth => Err("it is true or false, and no number".to_owned()),
            _ => parser.finish(node),
        }
    };
    parse(records, "number", text, read)
}

/// Reads the name of a field, or of an element of one, that is a number.
///
/// # Errors
/// As for [`predicate_of`].
pub fn field_of(records: &RecordType, text: &str) -> Result<FieldAt, UserError> {
    let read = |parser: &mut Parser<'_>| {
        let item = parser.primary()?;
        let node = parser.node(item)?;
        parser.finish(node)
    };
    match parse(records, "field", text, read)?.nodes[..] {
        [Node::Field(field)] => Ok(field),
        _ => {
            Err(UserError::usage(format!("cannot use the field {text:?}"), "it is no field", HELP))
        }
    }
}

fn parse(
    records: &RecordType,
    what: &str,
    text: &str,
    read: impl FnOnce(&mut Parser<'_>) -> Result<Expression, String>,
) -> Result<Expression, UserError> {
    let error = |cause: String| {
        let shown: String = text.chars().take(200).collect();
        UserError::usage(format!("cannot use the {what} {shown:?}"), cause, HELP)
    };
    if text.len() > TEXT_BYTES_MAX {
        return Err(error(format!("it has more than {TEXT_BYTES_MAX} bytes")));
    }
    let words = tokens(text).map_err(error)?;
    let mut parser = Parser { records, text, words, next: 0, nodes: Vec::new(), depth: 0 };
    read(&mut parser).map_err(error)
}

/// Part of a condition that was read.
#[derive(Clone, Copy)]
enum Item {
    Node(u16),
    Constant(Constant),
}

struct Parser<'a> {
    records: &'a RecordType,
    text: &'a str,
    words: Vec<Token>,
    next: usize,
    nodes: Vec<Node>,
    depth: u32,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Word> {
        self.words.get(self.next).map(|token| &token.word)
    }

    /// Takes the next word if it is this mark or word.
    fn takes(&mut self, wanted: &str) -> bool {
        let is_wanted = match self.peek() {
            Some(Word::Mark(mark)) => *mark == wanted,
            Some(Word::Name(name)) => name == wanted,
            _ => false,
        };
        self.next += usize::from(is_wanted);
        is_wanted
    }

    fn needs(&mut self, mark: &str) -> Result<(), String> {
        match self.takes(mark) {
            true => Ok(()),
            false => Err(format!("{mark:?} is missing {}", self.here())),
        }
    }

    /// The place of the next word, for an error.
    fn here(&self) -> String {
        match self.words.get(self.next) {
            Some(token) => {
                let rest: String = self.text[token.at..].chars().take(20).collect();
                format!("before {rest:?}")
            }
            None => "at its end".to_owned(),
        }
    }

    fn push(&mut self, node: Node) -> Result<u16, String> {
        if self.nodes.len() >= EXPRESSION_NODES_MAX {
            return Err(format!("it has more than {EXPRESSION_NODES_MAX} parts"));
        }
        self.nodes.push(node);
        let nodes = Expression { nodes: self.nodes.clone() };
        nodes.validate(self.records.record_bytes()).map_err(|error| error.to_string())?;
        Ok((self.nodes.len() - 1) as u16)
    }

    fn kind(&self, node: u16) -> Result<ValueKind, String> {
        let nodes = Expression { nodes: self.nodes.clone() };
        let kinds = nodes.validate(self.records.record_bytes());
        let kinds = kinds.map_err(|error| error.to_string())?;
        kinds.get(usize::from(node)).copied().ok_or_else(|| "it is empty".to_owned())
    }

    /// Ends with a node as the result.
    fn finish(&mut self, result: u16) -> Result<Expression, String> {
        if self.next < self.words.len() {
            return Err(format!(
                "nothing can follow {}",
                self.here().replacen("before", "there:", 1)
            ));
        }
        self.nodes.truncate(usize::from(result) + 1);
        Ok(Expression { nodes: std::mem::take(&mut self.nodes) })
    }

    fn node(&mut self, item: Item) -> Result<u16, String> {
        match item {
            Item::Node(node) => Ok(node),
            Item::Constant(_) => Err("a constant alone uses no field".to_owned()),
        }
    }

    /// Returns what is true if an item is: an integer if it is not zero.
    fn truth(&mut self, item: Item) -> Result<u16, String> {
        match item {
            Item::Constant(constant) => {
                let is_true = !matches!(
                    constant,
                    Constant::Signed(0) | Constant::Unsigned(0) | Constant::Float(0.0)
                );
                self.push(Node::Always(is_true))
            }
            Item::Node(node) => match self.kind(node)? {
                ValueKind::Truth => Ok(node),
                _ => self.push(Node::IsTrue { of: node }),
            },
        }
    }

    fn either(&mut self) -> Result<Item, String> {
        let first = self.both()?;
        self.combined(first, ["or", "||"], Self::both, Node::Or)
    }

    fn both(&mut self) -> Result<Item, String> {
        let first = self.negated()?;
        self.combined(first, ["and", "&&"], Self::negated, Node::And)
    }

    fn combined(
        &mut self,
        first: Item,
        words: [&str; 2],
        operand: impl Fn(&mut Self) -> Result<Item, String>,
        node: impl Fn(Vec<u16>) -> Node,
    ) -> Result<Item, String> {
        if !self.takes(words[0]) && !self.takes(words[1]) {
            return Ok(first);
        }
        let mut operands = vec![self.truth(first)?];
        loop {
            let next = operand(self)?;
            operands.push(self.truth(next)?);
            if !self.takes(words[0]) && !self.takes(words[1]) {
                return self.push(node(operands)).map(Item::Node);
            }
        }
    }

    fn negated(&mut self) -> Result<Item, String> {
        let mut negations = 0;
        while self.takes("not") || self.takes("!") {
            negations += 1;
        }
        let mut item = self.comparison()?;
        for _ in 0..negations % 2 {
            let truth = self.truth(item)?;
            item = Item::Node(self.push(Node::Not(truth))?);
        }
        if negations > 0 && negations % 2 == 0 {
            item = Item::Node(self.truth(item)?);
        }
        Ok(item)
    }

    fn comparison(&mut self) -> Result<Item, String> {
        let first = self.value()?;
        if self.peek() == Some(&Word::Name("in".to_owned())) {
            self.next += 1;
            return self.membership(first, false);
        }
        let is_not_in = self.words.get(self.next + 1).map(|token| &token.word)
            == Some(&Word::Name("in".to_owned()));
        if is_not_in && self.takes("not") {
            self.next += 1;
            return self.membership(first, true);
        }
        let (mut left, mut found) = (first, Vec::new());
        while let Some(how) = self.operator() {
            let right = self.value()?;
            found.push(self.compared(left, how, right)?);
            left = right;
        }
        match found[..] {
            [] => Ok(first),
            [one] => Ok(Item::Node(one)),
            _ => self.push(Node::And(found)).map(Item::Node),
        }
    }

    fn operator(&mut self) -> Option<Comparison> {
        Comparison::ALL.into_iter().find(|how| self.takes(&how.to_string()))
    }

    fn compared(&mut self, left: Item, how: Comparison, right: Item) -> Result<u16, String> {
        match (left, right) {
            (Item::Node(of), Item::Constant(with)) => {
                self.push(Node::CompareConstant { of, how, with })
            }
            (Item::Constant(with), Item::Node(of)) => {
                self.push(Node::CompareConstant { of, how: how.reversed(), with })
            }
            (Item::Node(of), Item::Node(with)) => self.push(Node::Compare { of, how, with }),
            (Item::Constant(_), Item::Constant(_)) => {
                Err("it compares two constants, and no field".to_owned())
            }
        }
    }

    fn membership(&mut self, item: Item, is_negated: bool) -> Result<Item, String> {
        let of = self.node(item)?;
        let close = match (self.takes("{"), self.takes("["), self.takes("(")) {
            (true, ..) => "}",
            (_, true, _) => "]",
            (.., true) => ")",
            _ => return Err(format!("\"{{\" is missing {}", self.here())),
        };
        let mut set = Vec::new();
        while !self.takes(close) {
            match self.value()? {
                Item::Constant(constant) => set.push(constant),
                Item::Node(_) => return Err("a set has constants only".to_owned()),
            }
            if !self.takes(",") {
                self.needs(close)?;
                break;
            }
        }
        let node = self.push(Node::In { of, set })?;
        match is_negated {
            true => self.push(Node::Not(node)).map(Item::Node),
            false => Ok(Item::Node(node)),
        }
    }

    fn value(&mut self) -> Result<Item, String> {
        let mut item = self.remainder()?;
        while self.takes("&") {
            let mask = self.integer()?;
            let mask = i64::try_from(mask).map(|mask| mask as u64).or(u64::try_from(mask));
            let mask = mask.map_err(|_| "a mask has at most 64 bits".to_owned())?;
            let of = self.node(item)?;
            item = Item::Node(self.push(Node::Mask { of, mask })?);
        }
        Ok(item)
    }

    fn remainder(&mut self) -> Result<Item, String> {
        let mut item = self.primary()?;
        while self.takes("%") {
            let by = self.integer()?;
            let by = u64::try_from(by).map_err(|_| "a divisor is positive".to_owned())?;
            let of = self.node(item)?;
            item = Item::Node(self.push(Node::Modulo { of, by })?);
        }
        Ok(item)
    }

    fn integer(&mut self) -> Result<i128, String> {
        let is_negative = self.takes("-");
        match self.peek() {
            Some(Word::Integer(value)) => {
                let value = *value;
                self.next += 1;
                Ok(if is_negative { -value } else { value })
            }
            _ => Err(format!("an integer is missing {}", self.here())),
        }
    }

    fn primary(&mut self) -> Result<Item, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("more than {DEPTH_MAX} brackets are inside one another"));
        }
        let item = self.operand()?;
        self.depth -= 1;
        Ok(item)
    }

    /// Reads what is in brackets, a constant, a field, or a function of others.
    fn operand(&mut self) -> Result<Item, String> {
        if self.takes("(") {
            let inside = self.either()?;
            self.needs(")")?;
            return Ok(inside);
        }
        let is_negative = self.takes("-");
        if !is_negative {
            self.takes("+");
        }
        let missing = format!("a field or number is missing {}", self.here());
        let word = self.peek().cloned().ok_or_else(|| missing.clone())?;
        self.next += 1;
        let constant = match word {
            Word::Integer(value) => Constant::of_integer(if is_negative { -value } else { value }),
            Word::Float(value) => Constant::Float(if is_negative { -value } else { value }),
            Word::Name(name) => match name.as_str() {
                "inf" if is_negative => Constant::Float(f64::NEG_INFINITY),
                "inf" => Constant::Float(f64::INFINITY),
                "nan" => Constant::Float(f64::NAN),
                _ if is_negative => return Err(missing),
                "true" | "True" => Constant::Signed(1),
                "false" | "False" => Constant::Signed(0),
                "hash" if self.takes("(") => return self.hash(),
                "bin" if self.takes("(") => return self.bin(),
                "answer" if self.takes("(") => {
                    self.needs(")")?;
                    return self.push(Node::Answer).map(Item::Node);
                }
                name if name.starts_with(FUNCTIONS) && self.takes("(") => {
                    return self.function(&name[FUNCTIONS.len()..]);
                }
                "and" | "or" | "not" | "in" => return Err(missing),
                name => return self.field(name),
            },
            Word::Quoted(name) if !is_negative => return self.field(&name),
            Word::Quoted(_) | Word::Mark(_) => return Err(missing),
        };
        Ok(Item::Constant(constant))
    }

    fn field(&mut self, name: &str) -> Result<Item, String> {
        let mut indices = Vec::new();
        while self.takes("[") {
            loop {
                let index = self.integer()?;
                let index = u64::try_from(index).map_err(|_| "an index is not negative")?;
                indices.push(index);
                if !self.takes(",") {
                    break;
                }
            }
            self.needs("]")?;
        }
        let at = self.records.number_at(name, &indices)?;
        self.push(Node::Field(at)).map(Item::Node)
    }

    fn hash(&mut self) -> Result<Item, String> {
        let value = self.value()?;
        let of = self.node(value)?;
        self.needs(")")?;
        self.push(Node::Hash { of }).map(Item::Node)
    }

    fn function(&mut self, name: &str) -> Result<Item, String> {
        let mut operands = Vec::new();
        while !self.takes(")") {
            let value = self.value()?;
            operands.push(self.node(value)?);
            if !self.takes(",") {
                self.needs(")")?;
                break;
            }
        }
        self.push(Node::Function { name: name.to_owned(), operands }).map(Item::Node)
    }

    fn bin(&mut self) -> Result<Item, String> {
        let value = self.value()?;
        let of = self.node(value)?;
        let mut number = || {
            self.needs(",")?;
            match self.primary()? {
                Item::Constant(Constant::Signed(value)) => Ok(value as f64),
                Item::Constant(Constant::Unsigned(value)) => Ok(value as f64),
                Item::Constant(Constant::Float(value)) => Ok(value),
                Item::Node(_) => Err("the start and width of bins are constants".to_owned()),
            }
        };
        let (low, width) = (number()?, number()?);
        self.needs(")")?;
        self.push(Node::Bin { of, low, width }).map(Item::Node)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: conditions mean what they mean in Python, and flaws are told with their place.
    use super::*;
    use policy::{Destination, Extensions, RecordGrid, Selected, Selection};

    fn records() -> RecordType {
        RecordType::parse("id:i4, energy:f8, flags:u1, at:3f4, 'odd name':i2, on:b1").unwrap()
    }

    fn record(id: i32, energy: f64, flags: u8, at: [f32; 3], on: bool) -> Vec<u8> {
        let mut bytes = id.to_le_bytes().to_vec();
        bytes.extend(energy.to_le_bytes());
        bytes.push(flags);
        at.iter().for_each(|at| bytes.extend(at.to_le_bytes()));
        bytes.extend(7_i16.to_le_bytes());
        bytes.push(u8::from(on));
        bytes
    }

    fn matching(text: &str) -> Vec<u32> {
        let file = [
            record(1, 5.5, 0b100, [0.0, 1.0, 2.0], true),
            record(-2, -1.0, 0b011, [0.5, 0.1, f32::NAN], false),
            record(30, 1e9, 0, [-1.0, 0.0, 0.0], true),
        ];
        let file = file.concat();
        let predicate = predicate_of(&records(), text).unwrap_or_else(|error| panic!("{error}"));
        let records = RecordGrid { start: 0, record_bytes: records().record_bytes(), count: 3 };
        let result = Selected::Records(Destination::One);
        let mut selector = Selection { records, condition: predicate.into(), result }
            .check((1 << 20, 1 << 20), &Extensions::default())
            .unwrap();
        selector.look_at(0, &file).unwrap().positions
    }

    #[test]
    fn conditions_are_those_of_python() {
        for (text, expected) in [
            ("energy > 5", &[0, 2][..]),
            ("energy > 5.0 and id < 10", &[0]),
            ("not energy > 5 or id == 30", &[1, 2]),
            ("not (energy > 5 or id == 30)", &[1]),
            ("0 <= id < 10", &[0]),
            ("10 > id", &[0, 1]),
            ("flags & 4", &[0]),
            ("not flags & 0x4", &[1, 2]),
            ("id in {1, 30}", &[0, 2]),
            ("id not in [1, 30,]", &[1]),
            ("at[1] == 0.1", &[1]),
            ("at[2] != at[2]", &[1]),
            ("id % 2 == 0", &[1, 2]),
            ("bin(energy, -10, 10) == 0", &[1]),
            ("hash(id) % 1 == 0", &[0, 1, 2]),
            ("energy < inf && energy > -inf", &[0, 1, 2]),
            ("on", &[0, 2]),
            ("!on || id == 1", &[0, 1]),
            ("not not flags", &[0, 1]),
            ("'odd name' == 7 and on == True", &[0, 2]),
            ("at[0] > at[1]", &[1]),
            ("true", &[0, 1, 2]),
            ("(id) > ((-5))", &[0, 1, 2]),
            ("energy > 5 and energy > 5 and not id == 1 or id == -2", &[1, 2]),
            ("id < 99999999999999999999999999", &[0, 1, 2]),
            ("energy >= 1e9", &[2]),
        ] {
            assert_eq!(matching(text), expected, "{text}");
        }
    }

    #[test]
    fn flaws_are_told_with_their_place() {
        let many = vec!["id == 1"; 300].join(" or ");
        let deep = format!("{}id{} > 1", "(".repeat(100), ")".repeat(100));
        let hashes = format!("{}id{} > 1", "hash(".repeat(20_000), ")".repeat(20_000));
        let functions = format!("{}id", "custom.f(".repeat(7_000));
        for (text, cause) in [
            (&hashes[..], "more than 65536 bytes"),
            (&hashes[..60_000], "brackets"),
            (&functions, "brackets"),
            ("flags & 6 % 4 == 0", "nothing can follow"),
            ("", "missing at its end"),
            ("energi > 5", "did you mean \"energy\""),
            ("energy >", "missing at its end"),
            ("energy > 5 5", "nothing can follow there: \"5\""),
            ("(energy > 5", "\")\" is missing at its end"),
            ("energy & 4", "needs an integer"),
            ("1 < 2", "compares two constants"),
            ("id in {energy}", "constants only"),
            ("id in 5", "is missing before \"5\""),
            ("at > 5", "has 1 dimensions, not 0"),
            ("at[7] > 5", "index 7 is beyond"),
            ("id % 0 == 1", "division by zero"),
            ("id % -2 == 1", "positive"),
            ("bin(energy, 0, 0) == 1", "positive width"),
            ("bin(energy, id, 1) == 1", "constants"),
            ("id $ 4", "'$' makes no sense"),
            ("'id > 4", "a quote is missing"),
            ("0x > 4", "is no number"),
            ("1.2.3 > id", "is no number"),
            ("- > 4", "missing before"),
            (&many, "parts"),
            (&deep, "brackets"),
        ] {
            let error = predicate_of(&records(), text).unwrap_err();
            assert!(error.cause.contains(cause), "{text}: {error}");
        }
        assert!(key_of(&records(), "hash(id) % 4").is_ok());
        assert!(key_of(&records(), "energy").unwrap_err().cause.contains("integer"));
        assert!(number_of(&records(), "energy").is_ok());
        let function = number_of(&records(), "custom.mass(energy, at[1],)").unwrap();
        let Some(Node::Function { name, operands }) = function.nodes.last() else { panic!() };
        assert_eq!((name.as_str(), &operands[..]), ("mass", &[0, 1][..]));
        assert!(number_of(&records(), "id > 1").is_err());
        let answer = key_of(&records(), "answer() % 4").unwrap();
        assert_eq!(answer.nodes, [Node::Answer, Node::Modulo { of: 0, by: 4 }]);
    }
}
