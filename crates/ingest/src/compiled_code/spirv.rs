//! SPIR-V modules: words of 32 bits, as section 2.3 of the SPIR-V specification lays them out.

use benchgate_core::model::Metric;

use super::{BadCode, CodeObject, CodeOfKernel, sha256};

const HEADER_WORDS: usize = 5;
const OP_NAME: u16 = 5;
const OP_MEMBER_NAME: u16 = 6;
const OP_ENTRY_POINT: u16 = 15;
const OP_FUNCTION: u16 = 54;
const OP_COOPERATIVE_MATRIX_MUL_ADD: u16 = 4459;

/// Reads a module as one kernel: a compiler of kernels writes one entry point for each module. If there are more, they
/// share their code, so their counts are those of the module.
pub(super) fn read(bytes: &[u8]) -> Result<CodeObject, BadCode> {
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() || words.len() < HEADER_WORDS {
        return Err("SPIR-V whose size is not a whole number of words".to_owned());
    }
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let mut names = Vec::new();
    let (mut instructions, mut matrix, mut in_function) = (0u64, 0u64, false);
    let mut content: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut at = HEADER_WORDS;
    while at < words.len() {
        let (length, opcode) = ((words[at] >> 16) as usize, (words[at] & 0xffff) as u16);
        // The magic number is no instruction: another module follows.
        if words[at] == words[0] {
            return Err("several SPIR-V modules in one".to_owned());
        }
        let instruction = words.get(at..at + length).filter(|found| !found.is_empty());
        let instruction = instruction.ok_or("SPIR-V with an instruction that is cut")?;
        in_function |= opcode == OP_FUNCTION;
        instructions += u64::from(in_function);
        matrix += u64::from(opcode == OP_COOPERATIVE_MATRIX_MUL_ADD);
        match opcode {
            OP_ENTRY_POINT => names.push(literal(instruction.get(3..).unwrap_or_default())),
            OP_NAME | OP_MEMBER_NAME => {}
            _ => content.extend(instruction.iter().flat_map(|word| word.to_le_bytes())),
        }
        at += length;
    }
    let facts = [
        (Metric::MATRIX_INSTRUCTIONS, matrix),
        (Metric::INSTRUCTIONS, instructions),
        (Metric::CODE_SIZE, bytes.len() as u64),
    ];
    let kernel = |name| CodeOfKernel {
        name,
        sha256: sha256(&[&content]),
        facts: facts.iter().map(|(metric, value)| (metric.clone(), *value as f64)).collect(),
    };
    let kernels = names.into_iter().map(kernel).collect();
    Ok(CodeObject { architecture: "spirv".to_owned(), kernels, ptx: None })
}

/// A literal string: UTF-8 in words, ended by a zero byte.
fn literal(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|&byte| byte != 0);
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}
