//! The lengths of GFX9 instructions (CDNA), in as much detail as counting matrix instructions needs: AMD's
//! "Instinct MI300 Instruction Set Architecture" reference guide, chapter "Microcode Formats".

/// Returns whether a processor's code uses these formats.
pub(super) fn is_gfx9(processor: &str) -> bool {
    matches!(processor, "gfx908" | "gfx90a" | "gfx940" | "gfx941" | "gfx942" | "gfx950")
}

/// Operand value that announces a literal constant.
const LITERAL: u32 = 255;
/// Operand values that announce an additional word for SDWA or DPP.
const EXTENDED: [u32; 2] = [249, 250];
/// `v_accvgpr_read` and `v_accvgpr_write` have opcodes in the range of the matrix instructions, but only
/// copy.
const COPIES: [u32; 2] = [0x58, 0x59];

/// Returns the number of instructions that multiply matrices; `None` if an instruction has an unknown format,
/// because its operands can't be distinguished from the next instruction.
pub(super) fn matrix_instructions(code: &[u8]) -> Option<u64> {
    let (words, rest) = code.as_chunks::<4>();
    if !rest.is_empty() {
        return None;
    }
    let mut found = 0;
    let mut at = 0;
    while at < words.len() {
        let word = u32::from_le_bytes(words[at]);
        found += u64::from(is_matrix(word));
        at += length(word)?;
    }
    Some(found)
}

/// Returns whether a word is VOP3P with the opcode of a matrix instruction.
fn is_matrix(word: u32) -> bool {
    let opcode = (word >> 16) & 0x7f;
    word >> 23 == 0b1_1010_0111 && opcode >= 0x40 && !COPIES.contains(&opcode)
}

/// Returns the number of words of the instruction that begins with this one.
fn length(word: u32) -> Option<usize> {
    let literal = |is_literal| if is_literal { 2 } else { 1 };
    let (first, second) = (word & 0xff, (word >> 8) & 0xff);
    let vector = word & 0x1ff;
    let vector_length = literal(vector == LITERAL || EXTENDED.contains(&vector));
    Some(match word {
        // SOP1, SOPC, SOPP, SOPK, SOP2.
        _ if word >> 23 == 0b1_0111_1101 => literal(first == LITERAL),
        _ if word >> 23 == 0b1_0111_1110 => literal(first == LITERAL || second == LITERAL),
        _ if word >> 23 == 0b1_0111_1111 => 1,
        // `s_setreg_imm32_b32` is the only SOPK instruction that a constant follows.
        _ if word >> 28 == 0b1011 => literal((word >> 23) & 0x1f == 20),
        _ if word >> 30 == 0b10 => literal(first == LITERAL || second == LITERAL),
        // VOP1, VOPC, VOP2. Four VOP2 instructions always have a constant: `v_madmk` and `v_madak`, in f32
        // and f16.
        _ if word >> 25 == 0b011_1111 || word >> 25 == 0b011_1110 => vector_length,
        _ if word >> 31 == 0 => match (word >> 25) & 0x3f {
            0x17 | 0x18 | 0x24 | 0x25 => 2,
            _ => vector_length,
        },
        // VOP3 and VOP3P, SMEM, DS, FLAT, MUBUF, MTBUF, MIMG, EXP.
        _ => match word >> 26 {
            0b11_0100 | 0b11_0000 | 0b11_0110 | 0b11_0111 | 0b11_1000 | 0b11_1010 | 0b11_1100 | 0b11_0001 => {
                2
            }
            _ => return None,
        },
    })
}
