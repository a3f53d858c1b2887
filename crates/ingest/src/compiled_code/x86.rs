//! ELF libraries for x86-64, instruction by instruction: function by function where they have names, else as a whole. IREE
//! names only the function that lists the others.

use std::collections::BTreeMap;

use iced_x86::{Code, Decoder, DecoderOptions, Mnemonic, Register};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

use benchgate_core::model::Metric;

use super::{BadCode, CodeObject, CodeOfKernel, sha256};

pub(super) fn read(file: &ElfFile64<'_, LittleEndian>) -> Result<CodeObject, BadCode> {
    let text: Vec<_> = file.sections().filter(|section| section.kind() == SectionKind::Text).collect();
    let size: u64 = text.iter().map(ObjectSection::size).sum();
    let mut kernels = functions(file, |section| section.kind() == SectionKind::Text);
    let named: u64 = kernels.values().map(|code| code.len() as u64).sum();
    if named < size / 2 {
        let [section] = &text[..] else {
            return Err("library with several sections of unnamed code".to_owned());
        };
        let code = section.data().map_err(|error| format!("broken section: {error}"))?;
        kernels = BTreeMap::from([(".text", code)]);
    }
    let kernels = kernels.into_iter().map(|(name, code)| CodeOfKernel {
        name: name.to_owned(),
        sha256: sha256(&[code]),
        facts: facts(code),
    });
    Ok(CodeObject { architecture: "x86-64".to_owned(), kernels: kernels.collect() })
}

/// The bytes of each function in the sections that `wanted` picks, by its name.
pub(super) fn functions<'a>(
    file: &ElfFile64<'a, LittleEndian>,
    wanted: impl Fn(&object::read::elf::ElfSection64<'a, '_, LittleEndian>) -> bool,
) -> BTreeMap<&'a str, &'a [u8]> {
    let mut found = BTreeMap::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        if symbol.kind() != SymbolKind::Text || symbol.size() == 0 {
            continue;
        }
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        let Some(section) = section.filter(|section| wanted(section)) else { continue };
        // A symbol beyond its section is a broken one, and names no code.
        let code = section.data_range(symbol.address(), symbol.size()).unwrap_or_default();
        if let (Ok(name), Some(code)) = (symbol.name(), code) {
            found.entry(name).or_insert(code);
        }
    }
    found
}

fn facts(code: &[u8]) -> Vec<(Metric, f64)> {
    let (mut instructions, mut frame) = (0u64, Some(0u64));
    let mut decoder = Decoder::new(64, code, DecoderOptions::NONE);
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.code() == Code::INVALID {
            continue;
        }
        instructions += 1;
        // `sub rsp, 1234`: the function's place on the stack.
        if instruction.mnemonic() == Mnemonic::Sub && instruction.op0_register() == Register::RSP {
            // A frame whose size is computed at run time is not known. `sub rsp, -128` is how compilers add 128.
            let size =
                instruction.try_immediate(1).ok().map(|size| u64::try_from(size.cast_signed()).unwrap_or(0));
            frame = frame.zip(size).map(|(known, size)| known.max(size));
        }
    }
    [
        (Metric::INSTRUCTIONS, Some(instructions)),
        (Metric::STACK_FRAME, frame),
        (Metric::CODE_SIZE, Some(code.len() as u64)),
    ]
    .into_iter()
    .filter_map(|(metric, value)| Some((metric, value? as f64)))
    .collect()
}
