//! Decodes the instructions of processors: x86-64, and AArch64 as far as their top-level encoding shows what they do ("Arm
//! Architecture Reference Manual for A-profile architecture", chapter "A64 Instruction Set Encoding"). There, every
//! instruction has four bytes.

use std::ops::Range;
use std::sync::OnceLock;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use super::elf_library::Counted;

/// The indexes in [`Counted::vector`] of 128-bit vectors and of vectors with the processor's own length.
const ADVANCED_SIMD: usize = 0;
const SVE: usize = 3;

const STACK_POINTER: u32 = 31;

pub(super) fn count_aarch64(code: &[u8]) -> Counted {
    let vector = [Some(0), None, None, Some(0)];
    let mut counted = Counted { vector, movable: code.to_vec(), ..Counted::default() };
    let mut stack = Stack { deepest: Some(0), ..Stack::default() };
    let (words, _) = code.as_chunks::<4>();
    for word in words {
        let word = u32::from_le_bytes(*word);
        // The permanently undefined instruction, which fills the space after a function.
        if word >> 16 == 0 {
            continue;
        }
        counted.instructions += 1;
        if is_scalar_float(word) {
            counted.scalar_float += 1;
        } else if is_advanced_simd(word) {
            counted.add_vector(ADVANCED_SIMD);
        } else if (word >> 25) & 0xf == 0b0010 {
            counted.add_vector(SVE);
        }
        stack.step(word);
    }
    counted.stack_frame = stack.deepest;
    counted
}

/// Returns whether an instruction processes a single floating-point number and is not a move: the classes
/// "floating-point data-processing" with one, two and three sources, compare, select, and conversion from and
/// to integers.
fn is_scalar_float(word: u32) -> bool {
    match word >> 24 {
        // Three sources: `fmadd`.
        0x1f => true,
        0x1e | 0x9e => !is_float_move(word),
        _ => false,
    }
}

/// Returns whether an instruction is an `fmov`: of an immediate, between floating-point registers, or from or
/// to a general register.
fn is_float_move(word: u32) -> bool {
    let is_immediate = (word >> 21) & 1 == 1 && (word >> 10) & 0b111 == 0b100;
    let is_register = (word >> 15) & 0x3f == 0 && (word >> 10) & 0x1f == 0b1_0000;
    // Opcodes 6 and 7 of the conversions; the rounding mode excludes `fjcvtzs`.
    let is_general = (word >> 10) & 0x3f == 0 && (word >> 17) & 0b11 == 0b11 && (word >> 19) & 0b11 != 0b11;
    (word >> 21) & 1 == 1 && (is_immediate || is_register || is_general)
}

/// Returns whether an instruction processes whole vectors. Scalar forms, loads and stores belong to other
/// classes.
fn is_advanced_simd(word: u32) -> bool {
    word >> 31 == 0 && matches!((word >> 24) & 0x1f, 0b0_1110 | 0b0_1111)
}

/// Tracks how far constants have lowered the stack pointer since the last return.
#[derive(Default)]
struct Stack {
    depth: u64,
    /// The greatest distance; `None` if an amount is computed at run time.
    deepest: Option<u64>,
    /// A register that holds the stack pointer minus a constant. The register is later aligned and becomes
    /// the stack pointer.
    prepared: Option<(u32, u64)>,
}

impl Stack {
    fn step(&mut self, word: u32) {
        let (target, source) = (word & 0x1f, (word >> 5) & 0x1f);
        let immediate = u64::from((word >> 10) & 0xfff) << if (word >> 22) & 1 == 1 { 12 } else { 0 };
        match word >> 23 {
            // `sub sp, sp, #n`; or `sub x9, sp, #n`, followed for large n by `sub x9, x9, #n`.
            0b1_1010_0010 if (target, source) == (STACK_POINTER, STACK_POINTER) => self.lower(immediate),
            0b1_1010_0010 if source == STACK_POINTER => self.prepared = Some((target, immediate)),
            0b1_1010_0010 => {
                if let Some((register, amount)) = &mut self.prepared
                    && (target, source) == (*register, *register)
                {
                    *amount = amount.saturating_add(immediate);
                }
            }
            // `add sp, sp, #n`. With the frame pointer as the source, `add` and `sub` restore the earlier
            // value.
            0b1_0010_0010 if (target, source) == (STACK_POINTER, STACK_POINTER) => {
                self.depth = self.depth.saturating_sub(immediate);
            }
            // `and sp, x9, #mask`.
            0b1_0010_0100 if target == STACK_POINTER => match self.prepared.take() {
                Some((register, amount)) if register == source => self.lower(amount),
                _ => self.deepest = None,
            },
            _ => {}
        }
        // `sub sp, sp, x8` and `add sp, sp, x8`, with an extended register.
        if target == STACK_POINTER && matches!(word >> 21, 0b110_0101_1001 | 0b100_0101_1001) {
            self.deepest = None;
        }
        // `mov sp, x8` is encoded as `add sp, x8, #0`; only a move from the frame pointer restores the
        // earlier value.
        const FRAME_POINTER: u32 = 29;
        if word >> 10 == 0b10_0100_0100_0000_0000_0000 && target == STACK_POINTER && source < FRAME_POINTER {
            self.deepest = None;
        }
        if source == STACK_POINTER {
            self.written_back(word);
        }
        // `ret`.
        if word & 0xffff_fc1f == 0xd65f_0000 {
            self.depth = 0;
        }
    }

    /// Handles stores and loads that move the stack pointer, such as `stp x29, x30, [sp, #-16]!` or `str x30,
    /// [sp, #-16]!`, and `ldp x29, x30, [sp], #16`.
    fn written_back(&mut self, word: u32) {
        let amount = if (word >> 27) & 0b111 == 0b101 && matches!((word >> 23) & 0b111, 0b001 | 0b011) {
            let is_vector = (word >> 26) & 1 == 1;
            let size = word >> 30;
            let scale = if is_vector { 2 + size } else { 2 + (size >> 1) };
            signed(word >> 15, 7) << scale
        } else if (word >> 27) & 0b111 == 0b111
            && (word >> 24) & 0b11 == 0
            && (word >> 21) & 1 == 0
            && matches!((word >> 10) & 0b11, 0b01 | 0b11)
        {
            signed(word >> 12, 9)
        } else {
            return;
        };
        if amount < 0 {
            self.lower(amount.unsigned_abs());
        } else {
            self.depth = self.depth.saturating_sub(amount.unsigned_abs());
        }
    }

    fn lower(&mut self, amount: u64) {
        self.depth = self.depth.saturating_add(amount);
        self.deepest = self.deepest.map(|deepest| deepest.max(self.depth));
    }
}

/// Returns the lowest `count` bits as a signed number.
fn signed(bits: u32, count: u32) -> i64 {
    let value = i64::from(bits & ((1 << count) - 1));
    if value >> (count - 1) == 1 { value - (1 << count) } else { value }
}

pub(super) fn count_x86(code: &[u8]) -> Counted {
    let vector = [Some(0), Some(0), Some(0), None];
    let mut counted = Counted { vector, stack_frame: Some(0), movable: code.to_vec(), ..Counted::default() };
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.code() == Code::INVALID {
            continue;
        }
        if let Some(address) = address(&decoder, &instruction, code.len()) {
            counted.movable[address].fill(0);
        }
        counted.instructions += 1;
        let mnemonic = instruction.mnemonic();
        if is_scalar_mnemonic(mnemonic) {
            counted.scalar_float += 1;
        } else if let Some(width) = vector_width(&instruction) {
            counted.add_vector(width);
        }
        // `sub rsp, 1234` allocates the function's stack frame.
        if mnemonic == Mnemonic::Sub && instruction.op0_register() == Register::RSP {
            // The size of a frame may be computed at run time and is then unknown. `sub rsp, -128` is how
            // compilers encode adding 128.
            let size =
                instruction.try_immediate(1).ok().map(|size| u64::try_from(size.cast_signed()).unwrap_or(0));
            counted.stack_frame = counted.stack_frame.zip(size).map(|(known, size)| known.max(size));
        }
    }
    counted
}

/// Returns the bytes in which an instruction encodes the distance to something outside the function:
/// constants, or another function.
fn address(decoder: &Decoder<'_>, instruction: &Instruction, size: usize) -> Option<Range<usize>> {
    let offsets = decoder.get_constant_offsets(instruction);
    let is_outside = || instruction.near_branch_target() >= size as u64;
    let (offset, length) = match instruction.op0_kind() {
        OpKind::NearBranch64 if is_outside() => (offsets.immediate_offset(), offsets.immediate_size()),
        _ if instruction.is_ip_rel_memory_operand() => {
            (offsets.displacement_offset(), offsets.displacement_size())
        }
        _ => return None,
    };
    let start = usize::try_from(instruction.ip()).ok()? + offset;
    Some(start..start + length)
}

/// Returns the index in [`Counted::vector`] of the widest vector register among the operands.
fn vector_width(instruction: &Instruction) -> Option<usize> {
    let registers = (0..instruction.op_count())
        .filter(|&operand| instruction.op_kind(operand) == OpKind::Register)
        .map(|operand| instruction.op_register(operand));
    let banks = [
        Register::XMM0..=Register::XMM31,
        Register::YMM0..=Register::YMM31,
        Register::ZMM0..=Register::ZMM31,
    ];
    registers.filter_map(|register| banks.iter().position(|bank| bank.contains(&register))).max()
}

/// Returns whether an SSE or AVX instruction computes with one floating-point number in a register; moves
/// don't count.
fn is_scalar_mnemonic(mnemonic: Mnemonic) -> bool {
    static SCALAR: OnceLock<Vec<bool>> = OnceLock::new();
    // Recognized by name, because iced has no such property. Integer instructions (`vpabsd`) and broadcasts
    // have the same suffixes and are excluded.
    let scalar = SCALAR.get_or_init(|| {
        let named = Mnemonic::values().map(|mnemonic| {
            let name = format!("{mnemonic:?}").to_ascii_lowercase();
            let name = name.strip_prefix('v').unwrap_or(&name);
            let moves =
                ["mov", "broadcast", "p", "gather", "scatter"].iter().any(|begin| name.starts_with(begin));
            let converts = ["cvtss2si", "cvtsd2si", "cvttss2si", "cvttsd2si"].contains(&name);
            converts || (!moves && ["ss", "sd"].iter().any(|end| name.ends_with(end)))
        });
        named.collect()
    });
    scalar.get(mnemonic as usize).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(words: &[u32]) -> Counted {
        count_aarch64(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
    }

    #[test]
    fn instructions_are_told_apart_by_their_encoding() {
        let found = counted(&[
            0x1e22_2820, // fadd s0, s1, s2
            0x1f02_0c20, // fmadd s0, s1, s2, s3
            0x1e20_4020, // fmov s0, s1
            0x1e27_0000, // fmov s0, w0
            0x9e66_0000, // fmov x0, d0
            0x1e2e_1000, // fmov s0, #1.0
            0x1e22_0000, // scvtf s0, w0
            0x1e22_2020, // fcmp s1, s2
            0x4e22_cc20, // fmla v0.4s, v1.4s, v2.4s
            0x0e61_2820, // xtn v0.4h, v1.4s
            0x5e61_d820, // scvtf d0, d1: a scalar form
            0x3dc0_0000, // ldr q0, [x0]
            0x0420_e3e0, // cntb x0
            0xd503_201f, // nop
            0x0000_0000, // udf #0
        ]);
        assert_eq!((found.instructions, found.scalar_float), (14, 4));
        assert_eq!(found.vector, [Some(2), None, None, Some(1)]);
    }

    #[test]
    fn a_frame_is_what_the_stack_pointer_is_lowered_by() {
        let frame = |words: &[u32]| counted(words).stack_frame;
        // stp x29, x30, [sp, #-96]!; sub sp, sp, #1, lsl #12; sub sp, sp, #0x230
        let prologue = [0xa9ba_7bfd, 0xd140_07ff, 0xd108_c3ff];
        assert_eq!(frame(&prologue), Some(96 + 4096 + 0x230));
        // Another function follows after `ret`: str x30, [sp, #-16]!
        assert_eq!(frame(&[prologue[0], 0xd65f_03c0, 0xf81f_0ffe]), Some(96));
        // stp d15, d14, [sp, #-160]!; ldp x29, x30, [sp], #16; sub sp, sp, #16
        assert_eq!(frame(&[0x6db6_3bef, 0xa8c1_7bfd, 0xd100_43ff]), Some(160));
        // sub x9, sp, #0x410; sub x9, x9, #1, lsl #12; and sp, x9, #0xffffffffffffffc0
        assert_eq!(frame(&[0xd110_43e9, 0xd140_0529, 0x927a_e53f]), Some(0x1410));
        // sub sp, sp, x8
        assert_eq!(frame(&[0xcb28_63ff]), None);
        // mov sp, x8
        assert_eq!(frame(&[0x9100_011f]), None);
        // mov sp, x29
        assert_eq!(frame(&[0x9100_03bf]), Some(0));
    }

    #[test]
    fn widths_and_scalar_floats_are_counted() {
        // vaddps ymm0,ymm1,ymm2; vaddss xmm0,xmm1,xmm2; vmovss xmm0,[rax]; vpabsd xmm0,xmm1; vcvttss2si eax,xmm0;
        // vfmadd231sd xmm0,xmm1,xmm2; vextractf128 xmm0,ymm1,1; sub rsp,64; ret
        let code = b"\xc5\xf4\x58\xc2\xc5\xf2\x58\xc2\xc5\xfa\x10\x00\xc4\xe2\x79\x1e\xc1\xc5\xfa\x2c\xc0\
            \xc4\xe2\xf1\xb9\xc2\xc4\xe3\x7d\x19\xc8\x01\x48\x83\xec\x40\xc3";
        let counted = count_x86(code);
        assert_eq!((counted.instructions, counted.scalar_float), (9, 3));
        assert_eq!(counted.vector, [Some(2), Some(2), Some(0), None]);
        assert_eq!(counted.stack_frame, Some(64));
    }
}
