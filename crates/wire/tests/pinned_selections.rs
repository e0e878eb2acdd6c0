//! Proves: every variant of every enum of a selection keeps its exact bytes, as in
//! [`pinned_bytes`](pinned_bytes.rs).

#[macro_use]
mod pins;

use policy::{
    Comparison, Constant, Destination, DiskOrder, Expression, FieldAt, Node, Number, NumberKind,
    Operator, RecordGrid, Reduced, Reduction, Selected, Selection,
};
use units::{FileId, RegionId};
use wire::{SelectReply, SelectRequest, TakenRecords};

const FILE: FileId = FileId(9);

pinned!(select_request: SelectRequest {
    SelectRequest::Begin { .. },
        SelectRequest::Begin {
            number: 7, file: FILE, selection: Box::new(selection()), order: DiskOrder::Sorted
        }, "00 | 07 09 ac 02 40 05 01 01 01 00 00 00 01";
    SelectRequest::Heads { .. }, SelectRequest::Heads { number: 7, from: 300 }, "01 | 07 ac 02";
    SelectRequest::Complete { .. },
        SelectRequest::Complete { number: 7, rests: vec![(300, 5)] }, "02 | 07 01 ac 02 05";
    SelectRequest::Number { .. }, SelectRequest::Number { number: 7 }, "03 | 07";
    SelectRequest::Counts { .. },
        SelectRequest::Counts { number: 7, destination: 2, from: 300 }, "04 | 07 02 ac 02";
    SelectRequest::Take { .. },
        SelectRequest::Take {
            number: 7, destination: 2, region: RegionId(4),
            places: vec![TakenRecords { block: 300, skipped: 1, count: 5, at: 64 }],
        }, "05 | 07 02 04 01 ac 02 01 05 40";
    SelectRequest::Keep { .. }, SelectRequest::Keep { number: 7 }, "07 | 07";
    SelectRequest::End { .. }, SelectRequest::End { number: 7 }, "06 | 07";
});

pinned!(select_reply: SelectReply {
    SelectReply::Begun { .. },
        SelectReply::Begun { blocks: 3, skipped: 2, head_bytes: 300 },
        "00 | 03 02 ac 02";
    SelectReply::Heads { .. }, SelectReply::Heads { heads: vec![(300, 5)], more: true },
        "01 | 01 ac 02 05 01";
    SelectReply::Number(_), SelectReply::Number(Reduced::Count(3)), "02 | 00 03";
    SelectReply::Counts { .. }, SelectReply::Counts { counts: vec![(300, 5)], more: true },
        "03 | 01 ac 02 05 01";
});

pinned!(selected: Selected {
    Selected::Records(_), Selected::Records(Destination::One), "00 | 00";
    Selected::Number(_), Selected::Number(Reduction::Count), "01 | 00";
    Selected::Summary(_), Selected::Summary(vec![field_at()]), "02 | 01 ac 02 0a 01";
});

pinned!(operator: Operator {
    Operator::Own(_), Operator::Own("f".to_owned()), "00 | 01 66";
    Operator::Module(_), Operator::Module(vec![0, 97]), "01 | 02 00 61";
});

pinned!(destination: Destination {
    Destination::One, Destination::One, "00";
    Destination::Part { .. }, Destination::Part { clients: 4 }, "01 | 04";
    Destination::Key { .. }, Destination::Key { key: Expression::always(), clients: 4 },
        "02 | 01 01 01 04";
});

pinned!(reduction: Reduction {
    Reduction::Count, Reduction::Count, "00";
    Reduction::Minimum(_), Reduction::Minimum(Expression::always()), "01 | 01 01 01";
    Reduction::Maximum(_), Reduction::Maximum(Expression::always()), "02 | 01 01 01";
    Reduction::Sum(_), Reduction::Sum(Expression::always()), "03 | 01 01 01";
    Reduction::Histogram { .. },
        Reduction::Histogram { of: Expression::always(), edges: vec![0.0, 1.0] },
            "04 | 01 01 01 02 00 00 00 00 00 00 00 00 00 00 00 00 00 00 f0 3f";
});

pinned!(reduced: Reduced {
    Reduced::Count(_), Reduced::Count(300), "00 | ac 02";
    Reduced::Minimum(_), Reduced::Minimum(None), "01 | 00";
    Reduced::Maximum(_), Reduced::Maximum(Some(Constant::Signed(-1))), "02 | 01 00 01";
    Reduced::IntegerSum(_), Reduced::IntegerSum(-300), "03 | d7 04";
    Reduced::FloatSum(..), Reduced::FloatSum(1.0, 0.0),
        "04 | 00 00 00 00 00 00 f0 3f 00 00 00 00 00 00 00 00";
    Reduced::Histogram(_), Reduced::Histogram(vec![1, 300]), "05 | 02 01 ac 02";
});

pinned!(constant: Constant {
    Constant::Signed(_), Constant::Signed(-1), "00 | 01";
    Constant::Unsigned(_), Constant::Unsigned(300), "01 | ac 02";
    Constant::Float(_), Constant::Float(1.0), "02 | 00 00 00 00 00 00 f0 3f";
});

pinned!(comparison: Comparison {
    Comparison::Equal, Comparison::Equal, "00";
    Comparison::NotEqual, Comparison::NotEqual, "01";
    Comparison::Less, Comparison::Less, "02";
    Comparison::LessOrEqual, Comparison::LessOrEqual, "03";
    Comparison::Greater, Comparison::Greater, "04";
    Comparison::GreaterOrEqual, Comparison::GreaterOrEqual, "05";
});

pinned!(node: Node {
    Node::Field(_), Node::Field(field_at()), "00 | ac 02 0a 01";
    Node::Always(_), Node::Always(true), "01 | 01";
    Node::IsTrue { .. }, Node::IsTrue { of: 2 }, "02 | 02";
    Node::CompareConstant { .. },
        Node::CompareConstant { of: 2, how: Comparison::Less, with: Constant::Signed(-1) },
            "03 | 02 02 00 01";
    Node::Compare { .. }, Node::Compare { of: 2, how: Comparison::Less, with: 3 }, "04 | 02 02 03";
    Node::In { .. }, Node::In { of: 2, set: vec![Constant::Signed(-1)] }, "05 | 02 01 00 01";
    Node::And(_), Node::And(vec![1, 2]), "06 | 02 01 02";
    Node::Or(_), Node::Or(vec![1, 2]), "07 | 02 01 02";
    Node::Not(_), Node::Not(2), "08 | 02";
    Node::Mask { .. }, Node::Mask { of: 2, mask: 300 }, "09 | 02 ac 02";
    Node::Modulo { .. }, Node::Modulo { of: 2, by: 300 }, "0a | 02 ac 02";
    Node::Hash { .. }, Node::Hash { of: 2 }, "0b | 02";
    Node::Function { .. }, Node::Function { name: "f".to_owned(), operands: vec![1, 2] },
        "0d | 01 66 02 01 02";
    Node::Answer, Node::Answer, "0e";
    Node::Bin { .. }, Node::Bin { of: 2, low: 0.0, width: 1.0 },
        "0c | 02 00 00 00 00 00 00 00 00 00 00 00 00 00 00 f0 3f";
});

pinned!(number_kind: NumberKind {
    NumberKind::Bool, NumberKind::Bool, "00";
    NumberKind::I8, NumberKind::I8, "01";
    NumberKind::I16, NumberKind::I16, "02";
    NumberKind::I32, NumberKind::I32, "03";
    NumberKind::I64, NumberKind::I64, "04";
    NumberKind::U8, NumberKind::U8, "05";
    NumberKind::U16, NumberKind::U16, "06";
    NumberKind::U32, NumberKind::U32, "07";
    NumberKind::U64, NumberKind::U64, "08";
    NumberKind::F32, NumberKind::F32, "09";
    NumberKind::F64, NumberKind::F64, "0a";
});

fn field_at() -> FieldAt {
    FieldAt { offset: 300, number: Number { kind: NumberKind::F64, is_big_endian: true } }
}

fn selection() -> Selection {
    let records = RecordGrid { start: 300, record_bytes: 64, count: 5 };
    let result = Selected::Records(Destination::One);
    Selection { records, condition: Expression::always().into(), result }
}
