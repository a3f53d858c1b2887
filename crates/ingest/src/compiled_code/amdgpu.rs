//! AMD code objects: the metadata note of the assembler, which LLVM's AMDGPU backend documents as code object
//! V3 and later (llvm.org/docs/AMDGPUUsage.html), and the matrix instructions in the code.

use std::collections::{BTreeMap, BTreeSet};

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, SectionKind, SymbolKind};
use rmpv::ValueRef;

use benchgate_core::model::{Metric, digest_of};

use super::{BadCode, CodeObject, CodeOfKernel, elf_library};

/// Type of the note that holds the metadata.
const NT_AMDGPU_METADATA: u32 = 32;
/// Maximum nesting of a metadata document, which holds kernels, their arguments, and the values of those.
const DEEPEST: usize = 16;

pub(super) fn read(file: &ElfFile64<'_, LittleEndian>) -> Result<CodeObject, BadCode> {
    let note = metadata(file)?.ok_or("code object without an AMDGPU metadata note")?;
    let document = rmpv::decode::read_value_ref_with_max_depth(&mut &*note, DEEPEST)
        .map_err(|error| format!("broken AMDGPU metadata: {error}"))?;
    if has_repeated_key(&document) {
        return Err("AMDGPU metadata with a duplicate key".to_owned());
    }
    let target = text(&document, "amdhsa.target").unwrap_or_default();
    // `amdgcn-amd-amdhsa--gfx942:sramecc+`, or `amdgpu9.42-amd-amdhsa-unknown-gfx942` in newer releases: a
    // triple with its environment, then the processor and its features, whose list may end with a minus sign.
    let architecture = target.splitn(5, '-').nth(4).unwrap_or(target).to_owned();
    let processor = architecture.split(':').next().unwrap_or_default().to_owned();
    let kernels =
        field(&document, "amdhsa.kernels").and_then(items).ok_or("AMDGPU metadata without kernels")?;
    let code = elf_library::functions(file, |section| section.kind() == SectionKind::Text)?;
    let descriptors = descriptors(file)?;
    let kernels = kernels.iter().map(|kernel| {
        let name = text(kernel, ".name").ok_or("a kernel without a name")?;
        let descriptor = descriptors.get(name).ok_or_else(|| format!("kernel {name:?} has no descriptor"))?;
        check(kernel, &processor, descriptor).map_err(|what| format!("kernel {name:?}: {what}"))?;
        Ok(CodeOfKernel {
            name: name.to_owned(),
            sha256: code.get(name).map_or_else(String::new, |code| digest_of([code])),
            facts: facts(kernel, &processor, code.get(name).copied()),
        })
    });
    let kernels = kernels.collect::<Result<Vec<CodeOfKernel>, BadCode>>()?;
    let known: BTreeSet<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    if known.len() < kernels.len() || known.len() < descriptors.len() {
        return Err("the AMDGPU metadata and the code have different kernels".to_owned());
    }
    Ok(CodeObject { architecture, kernels, ptx: None })
}

/// A kernel descriptor, with a flag whether it starts the function with its kernel's name.
struct Descriptor<'a> {
    bytes: &'a [u8; 64],
    starts_function: bool,
}

/// Returns the descriptors that the hardware reads, by kernel name: the symbols `NAME.kd` ("Kernel
/// Descriptor" on the same page).
fn descriptors<'a>(file: &ElfFile64<'a, LittleEndian>) -> Result<BTreeMap<&'a str, Descriptor<'a>>, BadCode> {
    const ENTRY: usize = 16;
    let symbols = elf_library::symbols(file).collect::<Result<Vec<_>, BadCode>>()?;
    let mut functions: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for symbol in symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Text) {
        functions.entry(symbol.name).or_default().insert(symbol.address);
    }
    let found = symbols.iter().filter_map(|symbol| {
        let name = symbol.name.strip_suffix(".kd")?;
        let section = file.section_by_index(symbol.section?).ok()?;
        let bytes: &[u8; 64] = section.data_range(symbol.address, 64).ok()??.try_into().ok()?;
        let offset = i64::from_le_bytes(*bytes[ENTRY..].first_chunk()?);
        let entry = symbol.address.checked_add_signed(offset);
        let starts_function =
            functions.get(name).is_some_and(|at| at.iter().all(|address| Some(*address) == entry));
        Some((name, Descriptor { bytes, starts_function }))
    });
    Ok(found.collect())
}

/// Rejects metadata that states a different amount of memory than the descriptor, or more registers: the
/// hardware allocates by the descriptor. The descriptor may have more registers than the metadata, because a
/// function's attributes can ask for few waves.
fn check(kernel: &ValueRef<'_>, processor: &str, descriptor: &Descriptor<'_>) -> Result<(), BadCode> {
    const RSRC1: usize = 48;
    if !descriptor.starts_function {
        return Err("its descriptor points to other code".to_owned());
    }
    let descriptor = descriptor.bytes;
    let word = |at: usize| {
        u64::from(u32::from_le_bytes([
            descriptor[at],
            descriptor[at + 1],
            descriptor[at + 2],
            descriptor[at + 3],
        ]))
    };
    for (key, at) in [(".group_segment_fixed_size", 0), (".private_segment_fixed_size", 4)] {
        let stated = field(kernel, key).and_then(ValueRef::as_u64);
        if stated.is_some_and(|stated| stated != word(at)) {
            return Err(format!("`{key}` differs from the value in its descriptor"));
        }
    }
    let allocated = ((word(RSRC1) & 0x3f) + 1) * STEP;
    let stated = field(kernel, ".vgpr_count").and_then(ValueRef::as_u64);
    if lds_of(processor).is_some() && stated.is_some_and(|stated| stated > allocated) {
        return Err("its descriptor has fewer registers than `.vgpr_count`".to_owned());
    }
    Ok(())
}

/// Returns whether a key appears twice in a map, in which case readers would differ in which of the two
/// values they use.
fn has_repeated_key(value: &ValueRef<'_>) -> bool {
    match value {
        ValueRef::Map(entries) => {
            let mut keys = BTreeSet::new();
            entries.iter().any(|(key, value)| {
                string(key).is_some_and(|key| !keys.insert(key)) || has_repeated_key(value)
            })
        }
        ValueRef::Array(items) => items.iter().any(has_repeated_key),
        _ => false,
    }
}

fn metadata<'a>(file: &ElfFile64<'a, LittleEndian>) -> Result<Option<&'a [u8]>, BadCode> {
    use object::read::elf::SectionHeader;
    let endian = LittleEndian;
    let mut found = None;
    for section in file.elf_section_table().iter() {
        let broken = |error: object::Error| format!("broken note: {error}");
        let Some(mut notes) = section.notes(endian, file.data()).map_err(broken)? else { continue };
        while let Some(note) = notes.next().map_err(broken)? {
            if note.name() == b"AMDGPU"
                && note.n_type(endian) == NT_AMDGPU_METADATA
                && found.replace(note.desc()).is_some_and(|before| before != note.desc())
            {
                return Err("several AMDGPU metadata notes".to_owned());
            }
        }
    }
    Ok(found)
}

fn facts(kernel: &ValueRef<'_>, processor: &str, code: Option<&[u8]>) -> Vec<(Metric, f64)> {
    let count = |key| field(kernel, key).and_then(ValueRef::as_u64);
    let spills = count(".vgpr_spill_count");
    let lds = count(".group_segment_fixed_size");
    let vector = count(".vgpr_count");
    let workgroup = count(".max_flat_workgroup_size");
    let occupancy = vector
        .zip(lds)
        .zip(workgroup)
        .and_then(|((vector, lds), workgroup)| occupancy(processor, vector, lds, workgroup));
    // The size of a stack that grows while the kernel runs is not in any note. Kernels that spill also have
    // such a stack, but most of their stack has a fixed size, which is stated; without a fixed size, nothing
    // is known.
    let is_dynamic = matches!(field(kernel, ".uses_dynamic_stack"), Some(ValueRef::Boolean(true)));
    let scratch = count(".private_segment_fixed_size").filter(|size| !is_dynamic || *size > 0);
    let matrix = code.filter(|_| is_gfx9(processor)).and_then(matrix_instructions);
    [
        (Metric::SPILLED_REGISTERS, spills),
        (Metric::SPILLED_SCALAR_REGISTERS, count(".sgpr_spill_count")),
        (Metric::SCRATCH, scratch),
        (Metric::OCCUPANCY, occupancy),
        (Metric::MATRIX_INSTRUCTIONS, matrix),
        (Metric::VECTOR_REGISTERS, vector),
        (Metric::ACCUMULATOR_REGISTERS, count(".agpr_count")),
        (Metric::SCALAR_REGISTERS, count(".sgpr_count")),
        (Metric::SHARED_MEMORY, lds),
        (Metric::CODE_SIZE, code.map(|code| code.len() as u64)),
    ]
    .into_iter()
    .filter_map(|(metric, value)| Some((metric, value? as f64)))
    .collect()
}

/// Number of lanes in a wave.
const WAVE: u64 = 64;
/// Number of SIMD units in a compute unit.
const SIMDS: u64 = 4;
/// Maximum number of waves that a SIMD unit of CDNA 2 and 3 can hold.
const MOST_WAVES: u64 = 8;
/// Number of vector registers of a lane, which ordinary and accumulator registers share, and the granularity
/// of their allocation.
const REGISTERS: u64 = 512;
const STEP: u64 = 8;

/// Returns the bytes of local memory in a compute unit of CDNA 2 and 3.
fn lds_of(processor: &str) -> Option<u64> {
    match processor {
        "gfx90a" | "gfx940" | "gfx941" | "gfx942" => Some(64 << 10),
        "gfx950" => Some(160 << 10),
        _ => None,
    }
}

/// Returns the number of waves for each SIMD unit that registers and local memory allow. Known for CDNA 2 and
/// 3 only (AMD Instinct MI200 and MI300 ISA reference guides); `None` for others.
fn occupancy(processor: &str, registers: u64, lds: u64, workgroup: u64) -> Option<u64> {
    let memory = lds_of(processor)?;
    let by_registers = REGISTERS / registers.max(1).next_multiple_of(STEP);
    let by_memory = match memory.checked_div(lds) {
        None => MOST_WAVES,
        Some(groups) => (groups * workgroup.div_ceil(WAVE)).div_ceil(SIMDS),
    };
    Some(MOST_WAVES.min(by_registers).min(by_memory))
}

fn field<'v, 'a>(map: &'v ValueRef<'a>, key: &str) -> Option<&'v ValueRef<'a>> {
    let ValueRef::Map(entries) = map else { return None };
    entries.iter().find_map(|(name, value)| (string(name)? == key).then_some(value))
}

fn items<'v, 'a>(list: &'v ValueRef<'a>) -> Option<&'v [ValueRef<'a>]> {
    match list {
        ValueRef::Array(items) => Some(items),
        _ => None,
    }
}

fn string<'a>(value: &ValueRef<'a>) -> Option<&'a str> {
    match value {
        ValueRef::String(text) => (*text).into_str(),
        _ => None,
    }
}

fn text<'a>(map: &ValueRef<'a>, key: &str) -> Option<&'a str> {
    field(map, key).and_then(string)
}

// The lengths of GFX9 instructions (CDNA), in as much detail as counting matrix instructions needs: AMD's
// "Instinct MI300 Instruction Set Architecture" reference guide, chapter "Microcode Formats".

/// Returns whether a processor's code uses these formats.
fn is_gfx9(processor: &str) -> bool {
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
fn matrix_instructions(code: &[u8]) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::occupancy;

    #[test]
    fn registers_and_local_memory_bound_the_occupancy() {
        assert_eq!(occupancy("gfx942", 64, 0, 256), Some(8));
        assert_eq!(occupancy("gfx942", 65, 0, 256), Some(7));
        assert_eq!(occupancy("gfx942", 128, 0, 256), Some(4));
        assert_eq!(occupancy("gfx942", 512, 0, 256), Some(1));
        assert_eq!(occupancy("gfx942", 64, 50_688, 256), Some(1));
        assert_eq!(occupancy("gfx1100", 64, 0, 256), None);
    }
}
