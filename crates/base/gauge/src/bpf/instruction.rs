//! The instructions of BPF programs (RFC 9669), as far as our programs need them.
//!
//! Registers: r0 holds the result of a call and of the program; r1 to r5 are arguments, which a call
//! destroys; a call keeps r6 to r9; r10 is the address of the end of the stack.

use std::os::fd::{AsRawFd as _, BorrowedFd};

/// One instruction in the kernel's format.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    code: u8,
    /// The number of the target register in the low four bits, of the source register in the high four.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A register of the BPF machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register(u8);

pub(crate) const R0: Register = Register(0);
pub(crate) const R1: Register = Register(1);
pub(crate) const R2: Register = Register(2);
pub(crate) const R3: Register = Register(3);
pub(crate) const R4: Register = Register(4);
pub(crate) const R6: Register = Register(6);
pub(crate) const R7: Register = Register(7);
pub(crate) const R8: Register = Register(8);
pub(crate) const R9: Register = Register(9);
pub(crate) const R10: Register = Register(10);

/// How many bytes a load or store moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Four = 0x00,
    Eight = 0x18,
}

/// The kernel's helper functions that our programs call, with their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// r0 = the address of the value in the map r1 for the key at address r2, or 0 if there is none.
    MapLookup = 1,
    /// Stores the value at address r3 in the map r1 for the key at address r2, replacing any old one
    /// (with r4 = 0).
    MapUpdate = 2,
    /// r0 = the nanoseconds since the machine was started.
    Time = 5,
    /// r0 = the process id in the high 32 bits, the thread id in the low 32 bits.
    CurrentThread = 14,
    /// r0 = the number of the cgroup that the process is in.
    CurrentCgroup = 80,
    /// Copies r2 bytes from the kernel's address r3 to address r1; writes zeros if they cannot be read.
    ReadKernel = 113,
}

/// target = source.
pub(crate) fn copy(target: Register, source: Register) -> Instruction {
    instruction(0xbf, target, source, 0, 0)
}

/// target = number.
pub(crate) fn set(target: Register, number: i32) -> Instruction {
    instruction(0xb7, target, R0, 0, number)
}

/// target += number.
pub(crate) fn add(target: Register, number: i32) -> Instruction {
    instruction(0x07, target, R0, 0, number)
}

/// target += source.
pub(crate) fn add_register(target: Register, source: Register) -> Instruction {
    instruction(0x0f, target, source, 0, 0)
}

/// target -= source.
pub(crate) fn subtract(target: Register, source: Register) -> Instruction {
    instruction(0x1f, target, source, 0, 0)
}

/// target <<= number.
pub(crate) fn shift_left(target: Register, number: i32) -> Instruction {
    instruction(0x67, target, R0, 0, number)
}

/// target >>= number, filling with zeros from the left.
pub(crate) fn shift_right(target: Register, number: i32) -> Instruction {
    instruction(0x77, target, R0, 0, number)
}

/// Converts the low 32 bits of target from the machine's byte order to big-endian.
pub(crate) fn to_big_endian(target: Register) -> Instruction {
    instruction(0xdc, target, R0, 0, 32)
}

/// target = the memory at base + offset.
pub(crate) fn load(size: Size, target: Register, base: Register, offset: i16) -> Instruction {
    instruction(0x61 | size as u8, target, base, offset, 0)
}

/// The memory at base + offset = source.
pub(crate) fn store(size: Size, base: Register, offset: i16, source: Register) -> Instruction {
    instruction(0x63 | size as u8, base, source, offset, 0)
}

/// The eight bytes of memory at base + offset += source, atomically among all cores.
pub(crate) fn atomic_add(base: Register, offset: i16, source: Register) -> Instruction {
    instruction(0xdb, base, source, offset, 0)
}

/// target = the map. This takes two instructions.
fn load_map(target: Register, map: BorrowedFd<'_>) -> [Instruction; 2] {
    const MAP_BY_DESCRIPTOR: Register = Register(1);
    [
        instruction(0x18, target, MAP_BY_DESCRIPTOR, 0, map.as_raw_fd()),
        instruction(0x00, R0, R0, 0, 0),
    ]
}

/// r0 = the address of the value in `map` for the key that stands on the stack at r10 + `key`; 0 if there
/// is none. Five instructions, which overwrite r1 to r5.
pub(crate) fn look_up(map: BorrowedFd<'_>, key: i32) -> [Instruction; 5] {
    let [map_low, map_high] = load_map(R1, map);
    let lookup = call(Function::MapLookup);
    [map_low, map_high, copy(R2, R10), add(R2, key), lookup]
}

/// Stores the value at r10 + `value` in `map` for the key at r10 + `key`. Eight instructions, which
/// overwrite r0 to r5.
pub(crate) fn update(map: BorrowedFd<'_>, key: i32, value: i32) -> [Instruction; 8] {
    let [map_low, map_high] = load_map(R1, map);
    [
        map_low,
        map_high,
        copy(R2, R10),
        add(R2, key),
        copy(R3, R10),
        add(R3, value),
        set(R4, 0),
        call(Function::MapUpdate),
    ]
}

/// r0 = function(r1, r2, …).
pub(crate) fn call(function: Function) -> Instruction {
    instruction(0x85, R0, R0, 0, function as i32)
}

/// Skips the next `count` instructions if the register is 0.
pub(crate) fn skip_if_zero(register: Register, count: i16) -> Instruction {
    instruction(0x15, register, R0, count, 0)
}

/// Skips the next `count` instructions unless the register is 0.
pub(crate) fn skip_unless_zero(register: Register, count: i16) -> Instruction {
    instruction(0x55, register, R0, count, 0)
}

/// Skips the next `count` instructions if the register, as a signed number, is at least `number`.
pub(crate) fn skip_if_at_least(register: Register, number: i32, count: i16) -> Instruction {
    instruction(0x75, register, R0, count, number)
}

/// Skips the next `count` instructions if the register, as a signed number, is less than `number`.
pub(crate) fn skip_if_below(register: Register, number: i32, count: i16) -> Instruction {
    instruction(0xc5, register, R0, count, number)
}

/// Skips the next `count` instructions.
pub(crate) fn skip(count: i16) -> Instruction {
    instruction(0x05, R0, R0, count, 0)
}

/// Ends the program; r0 is its result.
pub(crate) fn exit() -> Instruction {
    instruction(0x95, R0, R0, 0, 0)
}

fn instruction(
    code: u8,
    target: Register,
    source: Register,
    offset: i16,
    immediate: i32,
) -> Instruction {
    Instruction {
        code,
        registers: target.0 | source.0 << 4,
        offset,
        immediate,
    }
}
