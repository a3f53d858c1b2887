//! SPIR-V modules: words of 32 bits, as section 2.3 of the SPIR-V specification lays them out.

use std::collections::HashMap;

use benchgate_core::model::{Metric, digest_of};

use super::{BadCode, CodeObject, CodeOfKernel};

const HEADER_WORDS: usize = 5;
const OP_NAME: u16 = 5;
const OP_MEMBER_NAME: u16 = 6;
const OP_ENTRY_POINT: u16 = 15;
const OP_TYPE_BOOL: u16 = 20;
const OP_TYPE_INT: u16 = 21;
const OP_TYPE_FLOAT: u16 = 22;
const OP_TYPE_VECTOR: u16 = 23;
const OP_TYPE_ARRAY: u16 = 28;
const OP_TYPE_STRUCT: u16 = 30;
const OP_TYPE_POINTER: u16 = 32;
const OP_CONSTANT: u16 = 43;
const OP_FUNCTION: u16 = 54;
const OP_VARIABLE: u16 = 59;
const OP_VARIABLE_LENGTH_ARRAY: u16 = 5818;
const OP_COOPERATIVE_MATRIX_MUL_ADD: u16 = 4459;

/// Reads a module as one kernel, because kernel compilers write one entry point per module. If there are
/// more, they share their code, so the counts are those of the module.
pub(super) fn read(bytes: &[u8]) -> Result<CodeObject, BadCode> {
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() || words.len() < HEADER_WORDS {
        return Err("SPIR-V whose size is not a whole number of words".to_owned());
    }
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let mut names = Vec::new();
    let (mut instructions, mut matrix, mut in_function) = (0u64, 0u64, false);
    let (mut types, mut scratch) = (Types::default(), 0u64);
    let mut content: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut at = HEADER_WORDS;
    while at < words.len() {
        let (length, opcode) = ((words[at] >> 16) as usize, (words[at] & 0xffff) as u16);
        // The magic number is not an instruction, so another module follows.
        if words[at] == words[0] {
            return Err("several SPIR-V modules in one".to_owned());
        }
        let instruction = words.get(at..at + length).filter(|found| !found.is_empty());
        let instruction = instruction.ok_or("SPIR-V with a truncated instruction")?;
        in_function |= opcode == OP_FUNCTION;
        instructions += u64::from(in_function);
        matrix += u64::from(opcode == OP_COOPERATIVE_MATRIX_MUL_ADD);
        scratch = scratch.saturating_add(types.take(opcode, instruction)?);
        match opcode {
            OP_ENTRY_POINT => names.push(literal(instruction.get(3..).unwrap_or_default())),
            OP_NAME | OP_MEMBER_NAME => {}
            _ => content.extend(instruction.iter().flat_map(|word| word.to_le_bytes())),
        }
        at += length;
    }
    let facts = [
        (Metric::SCRATCH, scratch),
        (Metric::MATRIX_INSTRUCTIONS, matrix),
        (Metric::INSTRUCTIONS, instructions),
        (Metric::CODE_SIZE, bytes.len() as u64),
    ];
    let kernel = |name| CodeOfKernel {
        name,
        sha256: digest_of([&content]),
        facts: facts.iter().map(|(metric, value)| (metric.clone(), *value as f64)).collect(),
    };
    let kernels = names.into_iter().map(kernel).collect();
    Ok(CodeObject { architecture: "spirv".to_owned(), kernels, ptx: None })
}

/// The sizes of types and the values of constants declared so far, by id.
#[derive(Default)]
struct Types {
    /// Size in bytes, and true if the type is or contains an array; `None` for types whose size the code does
    /// not state.
    sizes: HashMap<u32, Option<(u64, bool)>>,
    /// Size of the type that a pointer refers to.
    pointers: HashMap<u32, Option<(u64, bool)>>,
    constants: HashMap<u32, u64>,
}

impl Types {
    /// Adds a declaration. Returns the bytes of an array that each invocation has for itself; drivers keep single values in
    /// registers.
    fn take(&mut self, opcode: u16, instruction: &[u32]) -> Result<u64, BadCode> {
        const PRIVATE: u32 = 6;
        const FUNCTION: u32 = 7;
        let size = |id: &u32| self.sizes.get(id).copied().flatten();
        match (opcode, instruction) {
            (OP_TYPE_BOOL, [_, id]) => {
                self.sizes.insert(*id, Some((1, false)));
            }
            (OP_TYPE_INT | OP_TYPE_FLOAT, [_, id, width, ..]) => {
                self.sizes.insert(*id, Some((u64::from(width.div_ceil(8)), false)));
            }
            (OP_TYPE_VECTOR, [_, id, of, count]) => {
                let whole = size(of).map(|(bytes, _)| (bytes.saturating_mul(u64::from(*count)), false));
                self.sizes.insert(*id, whole);
            }
            (OP_TYPE_ARRAY, [_, id, of, length]) => {
                // A length that is a specialization constant is unknown.
                let count = self.constants.get(length).copied().unwrap_or(u64::MAX);
                let whole = size(of).map(|(bytes, _)| (bytes.saturating_mul(count), true));
                self.sizes.insert(*id, whole);
            }
            (OP_TYPE_STRUCT, [_, id, members @ ..]) => {
                let whole = members.iter().try_fold((0, false), |(all, array): (u64, bool), member| {
                    size(member).map(|(bytes, is_array)| (all.saturating_add(bytes), array || is_array))
                });
                self.sizes.insert(*id, whole);
            }
            (OP_TYPE_POINTER, [_, id, _, to]) => {
                self.pointers.insert(*id, size(to));
            }
            (OP_CONSTANT, [_, _, id, low, high @ ..]) => {
                let high = high.first().copied().unwrap_or_default();
                self.constants.insert(*id, u64::from(high) << 32 | u64::from(*low));
            }
            (OP_VARIABLE, [_, kind, _, PRIVATE | FUNCTION, ..]) => {
                return match self.pointers.get(kind).copied().flatten() {
                    Some((u64::MAX, _)) => Err("the size of a private array is not known".to_owned()),
                    Some((bytes, true)) => Ok(bytes),
                    _ => Ok(0),
                };
            }
            (OP_VARIABLE_LENGTH_ARRAY, _) => {
                return Err("the size of a private array is not known".to_owned());
            }
            _ => {}
        }
        Ok(0)
    }
}

/// Returns a literal string: UTF-8 in words, terminated by a zero byte.
fn literal(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|&byte| byte != 0);
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a module with one array of floats, which either each invocation has for itself or several share.
    fn scratch(storage: u32, length: u32, length_kind: u16) -> Result<f64, BadCode> {
        const GL_COMPUTE: u32 = 5;
        let instructions: [(u16, &[u32]); 8] = [
            (OP_ENTRY_POINT, &[GL_COMPUTE, 9, 0x6b]),
            (OP_TYPE_FLOAT, &[1, 32]),
            (OP_TYPE_INT, &[2, 32, 0]),
            (length_kind, &[2, 3, length]),
            (OP_TYPE_ARRAY, &[4, 1, 3]),
            (OP_TYPE_POINTER, &[5, storage, 4]),
            (OP_VARIABLE, &[5, 6, storage]),
            (OP_FUNCTION, &[1, 9, 0, 1]),
        ];
        let mut words = vec![0x0723_0203, 0x0001_0300, 0, 10, 0];
        for (opcode, operands) in instructions {
            words.push((operands.len() as u32 + 1) << 16 | u32::from(opcode));
            words.extend(operands);
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        Ok(read(&bytes)?.kernels[0].facts[0].1)
    }

    #[test]
    fn an_array_of_each_invocation_is_scratch_memory() {
        const SPECIALIZED: u16 = 50;
        assert_eq!(scratch(7, 16, OP_CONSTANT), Ok(64.0));
        assert_eq!(scratch(6, 1000, OP_CONSTANT), Ok(4000.0));
        // Storage class 4 is memory of a work group.
        assert_eq!(scratch(4, 16, OP_CONSTANT), Ok(0.0));
        assert_eq!(scratch(4, 16, SPECIALIZED), Ok(0.0));
        assert!(scratch(7, 16, SPECIALIZED).is_err());
    }
}
