//! A replacement for Lua's `table.sort`. A call of Lua's own may compare for minutes, or for ever
//! if the order is inconsistent, and cannot be ended.
//!
//! Equal elements come out in the same order as in Lua, and a wrong order is noticed where Lua
//! notices it. So the steps are those of Lua: a quicksort whose pivot is the median of the first,
//! the middle and the last element.

use std::ffi::c_int;

use crate::stack::{Kind, Stack};

/// Halvings of a range whose length is a number of 32 bits.
const HALVINGS: usize = 32;
/// Bytes of two strings that are compared in one step.
const BYTES_TOGETHER: usize = 16;

/// The place of the function that compares; nil for `<`.
const ORDER: c_int = 2;

/// Elements from the first to the last of these places.
#[derive(Clone, Copy)]
struct Part {
    first: c_int,
    last: c_int,
}

/// `table.sort(table [, comp])`
pub(crate) fn sort(stack: Stack<'_>) -> c_int {
    stack.argument_table(1);
    let last = stack.length(1) as c_int;
    stack.need(40, "");
    if !matches!(stack.kind(ORDER), Kind::None | Kind::Nil) {
        stack.argument_function(ORDER);
    }
    stack.set_top(ORDER);
    // The larger half waits while the smaller one is sorted.
    let mut waiting = [Part { first: 0, last: 0 }; HALVINGS];
    let mut count = 0;
    let mut part = Part { first: 1, last };
    loop {
        while part.first < part.last {
            let Some(middle) = divide(stack, part) else { break };
            let (before, behind) =
                (Part { last: middle - 1, ..part }, Part { first: middle + 1, ..part });
            let (smaller, larger) = match middle - part.first < part.last - middle {
                true => (before, behind),
                false => (behind, before),
            };
            part = larger;
            if smaller.first < smaller.last {
                waiting[count] = larger;
                count += 1;
                part = smaller;
            }
        }
        if count == 0 {
            return 0;
        }
        count -= 1;
        part = waiting[count];
    }
}

/// Returns a place, and moves elements so that none before it comes after the element there in the
/// order, and none after it comes before. Returns none if nothing is left to be done.
fn divide(stack: Stack<'_>, Part { first, last }: Part) -> Option<c_int> {
    put_in_order(stack, first, last);
    if last - first == 1 {
        return None;
    }
    let middle = ((i64::from(first) + i64::from(last)) / 2) as c_int;
    stack.push_element(1, middle);
    stack.push_element(1, first);
    if is_before(stack, -2, -1) {
        exchange(stack, middle, first);
    } else {
        // The middle element is compared as before, even if the comparison has changed it.
        stack.pop(1);
        stack.push_element(1, last);
        if is_before(stack, -1, -2) {
            exchange(stack, middle, last);
        } else {
            stack.pop(2);
        }
    }
    if last - first == 2 {
        return None;
    }
    // The pivot stays on the stack, and in the table's last place but one.
    stack.push_element(1, middle);
    stack.push_copy(-1);
    stack.push_element(1, last - 1);
    exchange(stack, middle, last - 1);
    let (mut low, mut high) = (first, last - 1);
    loop {
        low += 1;
        stack.push_element(1, low);
        while is_before(stack, -1, -2) {
            if low > last {
                fail(stack);
            }
            stack.pop(1);
            low += 1;
            stack.push_element(1, low);
        }
        high -= 1;
        stack.push_element(1, high);
        while is_before(stack, -3, -1) {
            if high < first {
                fail(stack);
            }
            stack.pop(1);
            high -= 1;
            stack.push_element(1, high);
        }
        if high < low {
            break;
        }
        exchange(stack, low, high);
    }
    stack.pop(3);
    stack.push_element(1, last - 1);
    stack.push_element(1, low);
    exchange(stack, last - 1, low);
    Some(low)
}

/// Exchanges two elements if the second one comes before the first.
fn put_in_order(stack: Stack<'_>, first: c_int, second: c_int) {
    stack.push_element(1, first);
    stack.push_element(1, second);
    if is_before(stack, -1, -2) {
        exchange(stack, first, second);
    } else {
        stack.pop(2);
    }
}

/// Pops two values into these places: the upper value into the first place.
fn exchange(stack: Stack<'_>, first: c_int, second: c_int) {
    stack.set_element(1, first);
    stack.set_element(1, second);
}

fn fail(stack: Stack<'_>) -> ! {
    stack.fail(format_args!("invalid order function for sorting"))
}

/// Whether one of two values on the stack, counted from its top, comes before the other.
fn is_before(stack: Stack<'_>, one: c_int, other: c_int) -> bool {
    if stack.kind(ORDER) == Kind::Nil {
        match (stack.kind(one), stack.kind(other)) {
            (Kind::String, Kind::String) => {
                let bytes = stack.length(one).min(stack.length(other));
                stack.work(1 + bytes / BYTES_TOGETHER);
            }
            (Kind::Number, Kind::Number) => stack.work(1),
            // The metatable's own comparison may be a function that takes long.
            _ => stack.ask(),
        }
        return stack.is_less(one, other);
    }
    stack.work(1);
    stack.push_copy(ORDER);
    stack.push_copy(one - 1);
    stack.push_copy(other - 2);
    stack.call(2);
    let is_before = stack.boolean(-1);
    stack.pop(1);
    is_before
}
