//! Operators that users name or send, beside a condition.

use crate::UserError;
use policy::{Condition, Expression, MODULE_BYTES_MAX, Operator};

/// First bytes of a module of WebAssembly.
const MODULE_START: &[u8] = b"\0asm";

/// Returns the operator that a module of WebAssembly is.
///
/// # Errors
/// Bytes that are none, and too many.
pub fn module_operator(module: Vec<u8>) -> Result<Operator, UserError> {
    let refused = |cause: String| {
        let help = "give the binary form of a module, a file that ends in .wasm: a compiler for \
                    wasm32 makes it, and wat2wasm of a text";
        UserError::usage("cannot use the module", cause, help)
    };
    if !module.starts_with(MODULE_START) {
        return Err(refused("it is no module of WebAssembly in binary form".to_owned()));
    }
    match module.len() {
        bytes if bytes > MODULE_BYTES_MAX => {
            Err(refused(format!("it has {bytes} bytes, and the limit is {MODULE_BYTES_MAX}")))
        }
        _ => Ok(Operator::Module(module)),
    }
}

/// Returns a condition with the operator that a user names or sends, if there is one.
///
/// # Errors
/// A name and a module, and what [`module_operator`] refuses.
pub fn condition_with(
    predicate: Expression,
    name: Option<String>,
    module: Option<Vec<u8>>,
) -> Result<Condition, UserError> {
    let operator = match (name, module) {
        (None, None) => None,
        (Some(name), None) => Some(Operator::Own(name)),
        (None, Some(module)) => Some(module_operator(module)?),
        (Some(_), Some(_)) => {
            return Err(UserError::usage(
                "cannot use the condition",
                "it has an operator and a module",
                "give one of them",
            ));
        }
    };
    Ok(Condition { predicate, operator })
}

#[cfg(test)]
mod tests {
    //! Proves: what is no module is refused before it is sent.
    use super::*;

    #[test]
    fn what_is_no_module_is_not_sent() {
        assert!(module_operator(b"(module)".to_vec()).unwrap_err().cause.contains("no module"));
        let large = [MODULE_START, &vec![0; MODULE_BYTES_MAX]].concat();
        assert!(module_operator(large).unwrap_err().cause.contains("the limit is 1048576"));
        let module = MODULE_START.to_vec();
        assert_eq!(module_operator(module.clone()).unwrap(), Operator::Module(module.clone()));
        let both = condition_with(Expression::always(), Some("peak".to_owned()), Some(module));
        assert!(both.unwrap_err().cause.contains("an operator and a module"));
    }
}
