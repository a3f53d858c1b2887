//! Decodes x86-64 instructions.

use std::ops::Range;
use std::sync::OnceLock;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use super::elf_library::Counted;

pub(super) fn count(code: &[u8]) -> Counted {
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
        if is_scalar_float(mnemonic) {
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
fn is_scalar_float(mnemonic: Mnemonic) -> bool {
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

    #[test]
    fn widths_and_scalar_floats_are_counted() {
        // vaddps ymm0,ymm1,ymm2; vaddss xmm0,xmm1,xmm2; vmovss xmm0,[rax]; vpabsd xmm0,xmm1; vcvttss2si eax,xmm0;
        // vfmadd231sd xmm0,xmm1,xmm2; vextractf128 xmm0,ymm1,1; sub rsp,64; ret
        let code = b"\xc5\xf4\x58\xc2\xc5\xf2\x58\xc2\xc5\xfa\x10\x00\xc4\xe2\x79\x1e\xc1\xc5\xfa\x2c\xc0\
            \xc4\xe2\xf1\xb9\xc2\xc4\xe3\x7d\x19\xc8\x01\x48\x83\xec\x40\xc3";
        let counted = count(code);
        assert_eq!((counted.instructions, counted.scalar_float), (9, 3));
        assert_eq!(counted.vector, [Some(2), Some(2), Some(0), None]);
        assert_eq!(counted.stack_frame, Some(64));
    }
}
