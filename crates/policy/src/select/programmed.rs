//! Operators that are made of expressions, alone or with an operator of another origin.

use super::evaluator::Evaluator;
use super::number::Column;
use super::operator::{Answers, FailedOperator, RecordBatch, RecordOperator};

/// Selects the records for which a predicate is true.
pub(super) struct ExpressionOperator {
    pub(super) predicate: Evaluator,
    /// Number of a record that is selected, if one is needed.
    pub(super) number: Option<Evaluator>,
}

impl RecordOperator for ExpressionOperator {
    fn look_at(&mut self, records: RecordBatch<'_>) -> Result<Answers, FailedOperator> {
        let Column::Truth(selected) = self.predicate.evaluate(records, &[])? else {
            return Ok(Answers { selected: vec![false; records.count()], numbers: None });
        };
        let mut answers = Answers { selected, numbers: None };
        if let Some(number) = &self.number
            && answers.has_some()
        {
            answers.numbers = Some(number.evaluate(records, &[])?);
        }
        Ok(answers)
    }
}

/// Has another operator look at the records for which a predicate is true.
pub(super) struct FilteredOperator {
    pub(super) predicate: Evaluator,
    pub(super) operator: Box<dyn RecordOperator>,
    /// Number of a record that is selected, which may use that of the operator.
    pub(super) number: Option<Evaluator>,
}

impl RecordOperator for FilteredOperator {
    fn look_at(&mut self, records: RecordBatch<'_>) -> Result<Answers, FailedOperator> {
        let Column::Truth(mut selected) = self.predicate.evaluate(records, &[])? else {
            return Ok(Answers { selected: vec![false; records.count()], numbers: None });
        };
        if !selected.contains(&true) {
            return Ok(Answers { selected, numbers: None });
        }
        let is_all = !selected.contains(&false);
        let packed: Vec<u8> = match is_all {
            true => Vec::new(),
            false => {
                let chosen = records.records().zip(&selected).filter(|(_, chosen)| **chosen);
                chosen.flat_map(|(record, _)| record).copied().collect()
            }
        };
        let bytes = if is_all { records.bytes() } else { &packed };
        let answers = self.operator.look_at(RecordBatch::new(bytes, records.record_bytes()))?;
        let given = match &answers.numbers {
            Some(Column::Signed(given)) => &given[..],
            _ => &[],
        };
        let mut numbers = vec![-1; selected.len()];
        let places = selected.iter_mut().zip(&mut numbers).filter(|(chosen, _)| **chosen);
        for (at, (chosen, number)) in places.enumerate() {
            *chosen = answers.selected.get(at).copied().unwrap_or(false);
            *number = given.get(at).copied().unwrap_or(-1);
        }
        let mut answers = Answers { selected, numbers: None };
        if let Some(number) = &self.number
            && answers.has_some()
        {
            answers.numbers = Some(number.evaluate(records, &numbers)?);
        }
        Ok(answers)
    }
}
