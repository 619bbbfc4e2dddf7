//! `unpack`, `table.insert` and `table.concat`, in the place of Lua's. These count in 32 bits: the first
//! pushes beyond its stack when a range is too long for them. And they let nobody look at the clock while
//! they move or join millions of elements.

use std::ffi::c_int;

use crate::output::{Output, Room};
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

/// `table.concat(table [, sep [, i [, j]]])`
pub(crate) fn concat(stack: Stack<'_>) -> c_int {
    let separator = match stack.kind(2) {
        Kind::None | Kind::Nil => b"",
        _ => stack.argument_bytes(2),
    };
    table(stack);
    let first = stack.argument_integer_or(3, 1) as c_int;
    let last = match stack.kind(4) {
        Kind::None | Kind::Nil => stack.length(1) as c_int,
        _ => stack.argument_integer(4) as c_int,
    };
    stack.set_top(4);
    stack.push_nil();
    let mut room = Room::new();
    let mut output = Output::new(stack, 5, &mut room);
    for index in first..=last {
        stack.work(1);
        stack.push_element(1, index);
        if !matches!(stack.kind(-1), Kind::String | Kind::Number) {
            let kind = stack.kind_name(-1);
            stack.fail(format_args!(
                "invalid value ({kind}) at index {index} in table for 'concat'"
            ));
        }
        output.extend(stack.text(-1));
        stack.pop(1);
        if index < last {
            output.extend(separator);
        }
    }
    output.push_string();
    1
}

/// The first argument has to be a table.
fn table(stack: Stack<'_>) {
    if stack.kind(1) != Kind::Table {
        stack.fail_type(1, c"table");
    }
}
