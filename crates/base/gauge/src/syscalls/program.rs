//! The BPF programs at the tracepoints of system calls.
//!
//! The values in their maps are three words: the number of calls, the number of failed calls, and the
//! nanoseconds between entry and exit.

use std::os::fd::BorrowedFd;

use crate::bpf::Instruction;
use crate::bpf::instruction::{
    Function, R0, R1, R2, R3, R6, R7, R8, R9, R10, Register, Size, add, add_register, call, copy,
    exit, load, look_up, set, shift_left, shift_right, skip, skip_if_at_least, skip_if_below,
    skip_if_zero, store, subtract, update,
};

/// The program at the entry of a call: counts the call for the group.
///
/// The map must have entries for all counted groups already, so that no other group can fill it. The
/// arguments are the process' registers and the number of the call.
pub(super) fn entry(groups: BorrowedFd<'_>) -> Vec<Instruction> {
    let count = increase(CALLS, Step::One);
    [
        &store_group_key()[..],
        &look_up(groups, GROUP.into()),
        &[skip_if_zero(R0, length(&count))],
        &count,
        &end(),
    ]
    .concat()
}

/// At the entry of a call: keeps its number in r7, and stores the key of group and number on the stack.
fn store_group_key() -> [Instruction; 4] {
    [
        load(Size::Eight, R7, R1, 8),
        call(Function::CurrentCgroup),
        store(Size::Eight, R10, GROUP, R0),
        store(Size::Eight, R10, NUMBER, R7),
    ]
}

/// The program at the exit of a call: counts a failed call for the group, and leaves after three
/// instructions if it has not failed.
///
/// The arguments are the process' registers, which still hold the number of the call, and its result.
/// `number_at` is the offset of the number in the registers.
pub(super) fn exit_with_error(groups: BorrowedFd<'_>, number_at: i32) -> Vec<Instruction> {
    let count = increase(ERRORS, Step::One);
    let count_if_known = [
        &[
            // Copies the number of the call from the registers to the stack.
            copy(R3, R6),
            add(R3, number_at),
            copy(R1, R10),
            add(R1, NUMBER.into()),
            set(R2, 8),
            call(Function::ReadKernel),
            call(Function::CurrentCgroup),
            store(Size::Eight, R10, GROUP, R0),
        ][..],
        &look_up(groups, GROUP.into()),
        &[skip_if_zero(R0, length(&count))],
        &count,
    ]
    .concat();
    let skip_unless_error = [
        // r6 = the address of the registers, r7 = the result.
        load(Size::Eight, R6, R1, 0),
        load(Size::Eight, R7, R1, 8),
        skip_if_at_least(R7, 0, length(&count_if_known) + 1),
        skip_if_below(R7, LOWEST_ERROR, length(&count_if_known)),
    ];
    [&skip_unless_error[..], &count_if_known, &end()].concat()
}

/// The maps for counting in detail.
#[derive(Clone, Copy)]
pub(super) struct Maps<'a> {
    /// Keyed by group and number of the call.
    pub(super) groups: BorrowedFd<'a>,
    /// Keyed by group, and by the call's number with the process id in the high half.
    pub(super) processes: BorrowedFd<'a>,
    /// For each thread, the time at which its last call began, and the number of that call.
    pub(super) begun: BorrowedFd<'a>,
}

/// As [`entry`]; also counts the call for the process, and stores when it began.
pub(super) fn entry_in_detail(maps: Maps<'_>) -> Vec<Instruction> {
    let store_beginning = [
        &[
            // r6 = the thread.
            call(Function::CurrentThread),
            copy(R6, R0),
            store(Size::Eight, R10, THREAD, R6),
            call(Function::Time),
            store(Size::Eight, R10, BEGUN, R0),
            store(Size::Eight, R10, BEGUN + 8, R7),
        ][..],
        &update(maps.begun, THREAD.into(), BEGUN.into()),
    ]
    .concat();
    let count_again = increase(CALLS, Step::One);
    // The first call with this number of a process has no entry yet: its value is one call, no error, no time.
    let count_first = [
        &[
            set(R1, 1),
            store(Size::Eight, R10, FRESH, R1),
            set(R1, 0),
            store(Size::Eight, R10, FRESH + 8, R1),
            store(Size::Eight, R10, FRESH + 16, R1),
        ][..],
        &update(maps.processes, GROUP.into(), FRESH.into()),
    ]
    .concat();
    let count = [
        &increase(CALLS, Step::One)[..],
        &store_beginning,
        &store_process_key(R6, R7),
        &look_up(maps.processes, GROUP.into()),
        &[skip_if_zero(R0, length(&count_again) + 1)],
        &count_again,
        &[skip(length(&count_first))],
        &count_first,
    ]
    .concat();
    [
        &store_group_key()[..],
        &look_up(maps.groups, GROUP.into()),
        &[skip_if_zero(R0, length(&count))],
        &count,
        &end(),
    ]
    .concat()
}

/// The program at the exit of a call: counts failed calls and adds up the time of all calls, for the
/// group and for the process.
pub(super) fn exit_in_detail(maps: Maps<'_>) -> Vec<Instruction> {
    let count = [
        &increase(ERRORS, Step::By(R6))[..],
        &increase(NANOS, Step::By(R8)),
    ]
    .concat();
    let count_if_known = [
        &[
            // r8 = the time that the call took, r9 = its number.
            load(Size::Eight, R8, R0, 0),
            load(Size::Eight, R9, R0, 8),
            call(Function::Time),
            subtract(R0, R8),
            copy(R8, R0),
            // r6 = 1 if it failed: if r7 is negative and at least `LOWEST_ERROR`.
            set(R6, 0),
            skip_if_at_least(R7, 0, 2),
            skip_if_below(R7, LOWEST_ERROR, 1),
            set(R6, 1),
            call(Function::CurrentCgroup),
            store(Size::Eight, R10, GROUP, R0),
            store(Size::Eight, R10, NUMBER, R9),
        ][..],
        &look_up(maps.groups, GROUP.into()),
        &[skip_if_zero(R0, length(&count))],
        &count,
        &[load(Size::Eight, R7, R10, THREAD)],
        &store_process_key(R7, R9),
        &look_up(maps.processes, GROUP.into()),
        &[skip_if_zero(R0, length(&count))],
        &count,
    ]
    .concat();
    let store_thread = [
        // r7 = the result.
        load(Size::Eight, R7, R1, 8),
        call(Function::CurrentThread),
        store(Size::Eight, R10, THREAD, R0),
    ];
    [
        &store_thread[..],
        &look_up(maps.begun, THREAD.into()),
        &[skip_if_zero(R0, length(&count_if_known))],
        &count_if_known,
        &end(),
    ]
    .concat()
}

/// Replaces the number in the key on the stack by the second word of a process' key: the process id in the high
/// half, the call's number in the low half.
fn store_process_key(thread: Register, number: Register) -> [Instruction; 5] {
    [
        copy(R1, thread),
        shift_right(R1, 32),
        shift_left(R1, 32),
        add_register(R1, number),
        store(Size::Eight, R10, NUMBER, R1),
    ]
}

/// The amount by which a counter grows.
#[derive(Clone, Copy)]
enum Step {
    One,
    By(Register),
}

/// Adds to one word of the value that r0 points at. This need not be atomic, because each core has its
/// own value.
fn increase(word: i16, step: Step) -> [Instruction; 3] {
    let more = match step {
        Step::One => add(R1, 1),
        Step::By(register) => add_register(R1, register),
    };
    [
        load(Size::Eight, R1, R0, word),
        more,
        store(Size::Eight, R0, word, R1),
    ]
}

fn end() -> [Instruction; 2] {
    [set(R0, 0), exit()]
}

fn length(program: &[Instruction]) -> i16 {
    i16::try_from(program.len()).expect("programs here are short")
}

/// The offsets of the words in a value.
const CALLS: i16 = 0;
const ERRORS: i16 = 8;
const NANOS: i16 = 16;
/// The lowest result that means an error: the kernel returns the negative error number.
const LOWEST_ERROR: i32 = -4095;

/// Offsets on the stack from its end: the two words of the key, the thread, the start of its call with
/// the call's number, and the first value of a process.
const GROUP: i16 = -16;
const NUMBER: i16 = -8;
const THREAD: i16 = -24;
const BEGUN: i16 = -40;
const FRESH: i16 = -64;
