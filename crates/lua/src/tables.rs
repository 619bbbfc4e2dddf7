//! Replacements for Lua's `unpack` and functions of `table`. Lua's own functions count in 32 bits,
//! so `unpack` pushes beyond its stack when a range is too long. They also never look at the clock
//! while they move or join millions of elements.

use std::ffi::{CStr, c_int};

use crate::output::{Output, Room};
use crate::sort::sort;
use crate::stack::{Function, Kind, Stack, function};

const FUNCTIONS: &[(&CStr, Function)] = &[
    (c"concat", function(concat)),
    (c"foreach", function(each)),
    (c"foreachi", function(each_element)),
    (c"insert", function(insert)),
    (c"maxn", function(largest)),
    (c"remove", function(remove)),
    (c"sort", function(sort)),
];

/// Puts the functions into the table on top of the stack.
pub(crate) fn open(stack: Stack<'_>) {
    stack.set_functions(FUNCTIONS, 0);
}

/// `unpack(list [, i [, j]])`
pub(crate) fn unpack(stack: Stack<'_>) -> c_int {
    stack.argument_table(1);
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
fn insert(stack: Stack<'_>) -> c_int {
    stack.argument_table(1);
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

/// `table.remove(table [, pos])`
fn remove(stack: Stack<'_>) -> c_int {
    stack.argument_table(1);
    let last = stack.length(1) as c_int;
    let place = stack.argument_integer_or(2, i64::from(last)) as c_int;
    if !(1..=last).contains(&place) {
        return 0;
    }
    stack.push_element(1, place);
    for index in place..last {
        stack.work(1);
        stack.push_element(1, index + 1);
        stack.set_element(1, index);
    }
    stack.push_nil();
    stack.set_element(1, last);
    1
}

/// `table.maxn(table)`: the largest number among the keys.
fn largest(stack: Stack<'_>) -> c_int {
    stack.argument_table(1);
    let mut largest = 0.0;
    stack.push_nil();
    while stack.next(1) {
        stack.work(1);
        stack.pop(1);
        if stack.kind(-1) == Kind::Number && stack.number(-1) > largest {
            largest = stack.number(-1);
        }
    }
    stack.push_number(largest);
    1
}

/// `table.foreach(table, f)`: stops at the first key for which the function returns something.
fn each(stack: Stack<'_>) -> c_int {
    stack.argument_table(1);
    stack.argument_function(2);
    stack.push_nil();
    while stack.next(1) {
        stack.push_copy(2);
        stack.push_copy(-3);
        stack.push_copy(-3);
        stack.call(2);
        if stack.kind(-1) != Kind::Nil {
            return 1;
        }
        stack.pop(2);
    }
    0
}

/// `table.foreachi(table, f)`: the same for elements, in their order.
fn each_element(stack: Stack<'_>) -> c_int {
    stack.argument_table(1);
    stack.argument_function(2);
    for index in 1..=stack.length(1) as c_int {
        stack.push_copy(2);
        stack.push_number(f64::from(index));
        stack.push_element(1, index);
        stack.call(2);
        if stack.kind(-1) != Kind::Nil {
            return 1;
        }
        stack.pop(1);
    }
    0
}

/// `table.concat(table [, sep [, i [, j]]])`
fn concat(stack: Stack<'_>) -> c_int {
    let separator = match stack.kind(2) {
        Kind::None | Kind::Nil => b"",
        _ => stack.argument_bytes(2),
    };
    stack.argument_table(1);
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
