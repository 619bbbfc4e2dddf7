//! `unpack` and `table.insert`, in the place of Lua's, which count in 32 bits: the one pushes beyond its
//! stack when a range is too long for them, the other moves two thousand million elements at once.

use std::ffi::c_int;

use crate::stack::{Kind, Stack};

/// `unpack(list [, i [, j]])`
pub(crate) fn unpack(stack: Stack<'_>) -> c_int {
    table(stack);
    let first = stack.argument_integer_or(2, 1) as c_int;
    let last = match stack.kind(3) {
        Kind::None | Kind::Nil => stack.length(1) as c_int,
        _ => stack.argument_integer(3) as c_int,
    };
    if first > last {
        return 0;
    }
    match c_int::try_from(i64::from(last) - i64::from(first) + 1) {
        Ok(count) if stack.reserve(count) => {
            (first..=last).for_each(|index| stack.push_element(1, index));
            count
        }
        _ => stack.fail(format_args!("too many results to unpack")),
    }
}

/// `table.insert(table, [pos,] value)`
pub(crate) fn insert(stack: Stack<'_>) -> c_int {
    table(stack);
    let behind = stack.length(1) as c_int + 1;
    let place = match stack.top() {
        2 => behind,
        3 => {
            let place = stack.argument_integer(2) as c_int;
            let mut index = behind.max(place);
            while index > place {
                stack.work(1);
                stack.push_element(1, index - 1);
                stack.set_element(1, index);
                index -= 1;
            }
            place
        }
        _ => stack.fail(format_args!("wrong number of arguments to 'insert'")),
    };
    stack.set_element(1, place);
    0
}

/// The first argument has to be a table.
fn table(stack: Stack<'_>) {
    if stack.kind(1) != Kind::Table {
        stack.fail_type(1, c"table");
    }
}
